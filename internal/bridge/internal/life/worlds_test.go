package life

import (
	"fmt"
	"slices"
	"testing"
)

// world is a life with what is outside of its state: what waits, and what is under way.
type world struct {
	State
	remembers         bool // whether anything is remembered at all
	message           bool // one waits at the gate
	initialize        bool // one of the client waits
	asked             bool // memory has a question
	moment, learning  bool
	start             bool
	session           bool
	prepares, empties bool // the session
	pause             bool
	retry             bool // in GivenUp: a request may cause a start
}

func (w world) is(phases ...Phase) bool { return slices.Contains(phases, w.Phase) }

// after returns the world after what the driver does. An action that finds what it must not find is an error.
func (w world) after(next State, actions []Action) (world, error) {
	w.State = next
	for _, action := range actions {
		switch action {
		case Recall:
			w.asked, w.moment, w.learning = true, false, false
		case StartMoment:
			w.moment = true
		case Learn:
			w.learning = true
		case StopWaiting:
			w.asked, w.moment, w.learning, w.pause = false, false, false, false
		case TellMemory:
			w.initialize = false
		case BeginStart:
			if w.start {
				return w, fmt.Errorf("a second start")
			}
			w.start = true
		case StartNeeded, StartOwn, StartMore, StartReplaced:
			if !w.start {
				return w, fmt.Errorf("%s: there is no start", action)
			}
		case AbandonStart:
			w.start = false
		case AnswerInitializes:
			if !w.session {
				return w, fmt.Errorf("%s: there is no session", action)
			}
			w.initialize = false
		case AnnounceResult, TellAllChanged, TellCompared:
			if !w.session {
				return w, fmt.Errorf("%s: there is no session", action)
			}
		case Prepare:
			w.prepares = true
		case Release:
			w.empties = true
		case RetireSession, SupersedeSession:
			if !w.session {
				return w, fmt.Errorf("%s: there is no session", action)
			}
			w.session, w.prepares, w.empties = false, false, false
		case CloseSession:
			w.session, w.prepares, w.empties = false, false, false
		case StartPause:
			if w.pause {
				return w, fmt.Errorf("a second pause")
			}
			w.pause = true
		case RefuseWaiting, RefuseDraining:
			w.message, w.initialize = false, false
		case SetRetry:
			w.retry = false
		}
	}
	return w, nil
}

// faults returns what must not be in any world.
func (w world) faults() (all []string) {
	isAsked := w.asked || w.moment || w.learning
	for fault, is := range map[string]bool{
		"nothing ends the recalling":             w.Phase.Recalls() && !isAsked,
		"it waits, and is to answer now":         (w.moment || w.learning) && !w.is(Recalling),
		"a start, and it is not waking":          w.start != w.is(Waking),
		"a session, and the phase has none":      w.session != w.is(Preparing, Opening, Fresh, Awake, Finishing),
		"nothing prepares the session":           w.is(Preparing) && !w.prepares,
		"nothing empties the gate":               w.is(Opening) && !w.empties,
		"a pause, and the phase has none":        w.pause != w.is(Pausing, Refusing),
		"a message waits for nothing":            w.message && !w.is(Recalling, RecallingNow, Waking, Preparing, Opening, Pausing),
		"an initialize waits for nothing":        w.initialize && !w.is(Recalling, RecallingNow, Waking, Pausing),
		"nobody will hear what memory says":      isAsked && !w.is(Recalling, RecallingNow, Waking),
		"asleep without lists":                   w.is(Asleep) && w.Told != ToldLists,
		"a client of a session is told nothing":  w.Phase.sessionTakesRequests() && w.Told == ToldNothing,
		"a message passes, and there is nothing": w.Phase.Takes(false, true) == Pass && !w.session,
		"lists that do not hold are answered":    w.AnswersLists() && w.Told.MayBeOutdated(),
	} {
		if is {
			all = append(all, fault)
		}
	}
	slices.Sort(all)
	return all
}

// happening is an event, and the world in which the driver sees it. The event is empty where the world
// changes by itself.
type happening struct {
	event Event
	world world
}

// happenings returns all that can come next, by the guards of the driver.
func (w world) happenings() (all []happening) {
	// add adds an event before which the world changes.
	add := func(event Event, change func(*world)) {
		before := w
		change(&before)
		all = append(all, happening{event, before})
	}
	same := func(*world) {}

	// The client sends a message, a notification or initialize; what waits too long is answered.
	for _, isRequest := range []bool{true, false} {
		switch w.Phase.Takes(isRequest, w.retry) {
		case Wait:
			add(Needed, func(w *world) { w.message = true })
		case Use:
			add(Needed, same)
		}
	}
	for _, event := range []Event{OwnInitialize, OwnUnkept} {
		add(event, func(w *world) { w.initialize = true })
	}
	if w.Declared != DeclaredRefused || !w.session && !w.start {
		add(MoreDeclared, func(w *world) { w.initialize = true })
	}
	if w.message {
		add("", func(w *world) { w.message = false })
	}
	if w.initialize {
		add("", func(w *world) { w.initialize = false })
	}
	if w.is(GivenUp) && !w.retry {
		add("", func(w *world) { w.retry = true })
	}

	// Memory answers, and timers end.
	toldLittle := w.Told == ToldNothing || w.Told == ToldResult
	if w.asked {
		answered := func(w *world) { w.asked = false }
		add(Unknown, answered)
		if w.remembers {
			add(Known, func(w *world) { w.asked, w.message = false, false }) // memory answers what waits
			add(KnownNearly, answered)
			if w.message {
				add(KnownNeeded, answered)
			}
			if toldLittle {
				add(KnownOld, answered)
			}
		}
		if w.remembers && w.is(Recalling) {
			if toldLittle {
				add(Unsure, answered)
			}
			if w.Told.MayBeOutdated() && !w.message && !w.initialize {
				add(Learnable, answered)
			}
		}
	}
	if w.moment {
		add(MomentOver, func(w *world) { w.moment = false })
	}
	if w.learning {
		add(Learned, func(w *world) { w.learning = false })
	}
	if w.pause {
		add(PauseOver, func(w *world) { w.pause = false })
	}

	// The start ends.
	if w.start {
		add(Up, func(w *world) { w.start, w.session = false, true })
		for _, event := range []Event{Again, Failed, FailedHopeless, FailedLast} {
			add(event, func(w *world) { w.start = false })
		}
		if w.Declared == DeclaredOwn || w.Declared == DeclaredUnkept { // the start may have the params of an earlier one
			add(OwnRefused, same)
		}
	}

	// The session is prepared, looked at, used and ended.
	if w.prepares && w.message {
		add(PreparedWaits, func(w *world) { w.prepares = false })
	}
	if w.prepares && !w.message {
		add(PreparedUnused, func(w *world) { w.prepares = false })
		add(PreparedUsed, func(w *world) { w.prepares = false })
	}
	if w.empties {
		add(Emptied, func(w *world) { w.empties, w.message = false, false })
	}
	if w.session {
		for _, event := range []Event{Looked, NotLooked, Unlookable, ListsChanged, Lost, LostSoon, LostLast, Retired, Dismiss} {
			add(event, same)
		}
	}
	if w.is(Fresh, Awake) && w.remembers && !w.Told.MayBeOutdated() {
		add(Idle, same)
	}
	for _, event := range []Event{Replaced, Renewed, Drain, Close} {
		add(event, same)
	}
	return all
}

// Whatever happens, in whatever order: no event meets a state in which it cannot happen, and no world has
// a fault. All worlds are visited that the table, the driver's actions and its guards lead to.
func TestNoOrderOfEventsLeadsToAFault(t *testing.T) {
	type origin struct {
		world world
		event Event
	}
	origins := make(map[world]origin)
	var worlds []world
	visit := func(w world, by origin) {
		if _, known := origins[w]; !known {
			origins[w] = by
			worlds = append(worlds, w)
		}
	}
	first := world{State: State{Recalling, ToldNothing, DeclaredNothing}, asked: true}
	visit(first, origin{})
	first.remembers = true
	visit(first, origin{})

	way := func(w world) (way []string) {
		for by := origins[w]; by.world.Phase != ""; by = origins[by.world] {
			way = append(way, fmt.Sprintf("%s: %s", by.world.Phase, by.event))
		}
		slices.Reverse(way)
		return way
	}
	happened := make(map[pair]bool)
	for i := 0; i < len(worlds); i++ {
		if i == 10_000 {
			t.Fatal("there is no end of worlds")
		}
		w := worlds[i]
		for _, h := range w.happenings() {
			if h.event == "" {
				visit(h.world, origin{w, "time"})
				continue
			}
			next, actions, ok := Next(h.world.State, h.event)
			if !ok {
				t.Fatalf("%s cannot happen in %+v, but does: %q", h.event, h.world, way(w))
			}
			happened[pair{w.Phase, h.event}] = true
			after, err := h.world.after(next, actions)
			if faults := after.faults(); err != nil || faults != nil {
				t.Fatalf("%s in %+v: %v, %q: %q", h.event, h.world, err, faults, way(w))
			}
			visit(after, origin{w, h.event})
		}
	}
	// These are in the table for the moment in which a session is asked to drain.
	for _, p := range []pair{{Finishing, PreparedWaits}, {Finishing, Idle}} {
		if happened[p] {
			t.Errorf("%v happens: it is no exception", p)
		}
		happened[p] = true
	}
	for _, phase := range phases {
		for _, event := range events {
			if p := (pair{phase, event}); p.isInTable() && !happened[p] {
				t.Errorf("%v is in the table, and never happens", p)
			}
		}
	}
	t.Logf("%d worlds", len(worlds))
}

// A life comes to its end from each state.
func TestCloseEndsALife(t *testing.T) {
	for _, phase := range phases {
		for _, told := range tolds {
			for _, declared := range declareds {
				if next, _, ok := Next(State{phase, told, declared}, Close); !ok || next.Phase != Closed {
					t.Errorf("%s: got %s, %v", phase, next.Phase, ok)
				}
			}
		}
	}
}
