package life

import (
	"slices"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/asker"
)

// An action that tells the client something is not due if the client knows nothing else.
func TestActionsDependOnWhatWasTold(t *testing.T) {
	for _, row := range []struct {
		phase  Phase
		event  Event
		action Action
		due    []Told
	}{
		{Waking, Up, AnnounceResult, []Told{ToldNothing}},
		{Waking, Up, TellAllChanged, []Told{ToldOutdated, ToldUncertain}},
		{Recalling, Known, TellIfDifferent, []Told{ToldNearest, ToldLists, ToldOutdated, ToldUncertain}},
		{RecallingNow, KnownNeeded, TellIfDifferent, []Told{ToldNearest, ToldLists, ToldOutdated, ToldUncertain}},
		{Asleep, Renewed, TellIfDifferent, []Told{ToldNearest, ToldLists, ToldOutdated, ToldUncertain}},
		{Awake, Looked, TellCompared, []Told{ToldNearest, ToldLists, ToldOutdated}},
		{Awake, NotLooked, TellAllChanged, []Told{ToldNearest}},
		{Awake, Unlookable, TellAllChanged, []Told{ToldNearest, ToldLists}},
		{Recalling, Known, TellMemory, tolds},
		{Waking, Renewed, Recall, []Told{ToldNothing, ToldResult}},
		{Waking, OwnInitialize, Recall, tolds},
	} {
		for _, told := range tolds {
			_, actions, _ := Next(State{row.phase, told, DeclaredNothing}, row.event)
			if got, want := slices.Contains(actions, row.action), slices.Contains(row.due, told); got != want {
				t.Errorf("%s, %s after %s: %s is due: %v, want %v", row.phase, row.event, told, row.action, got, want)
			}
		}
	}
}

func TestDeclared(t *testing.T) {
	for _, row := range []struct {
		phase Phase
		event Event
		want  Declared
	}{
		{Asleep, OwnInitialize, DeclaredOwn},
		{Waking, MoreDeclared, DeclaredOwn},
		{Pausing, OwnUnkept, DeclaredUnkept},
		{Waking, OwnRefused, DeclaredRefused},
		{Preparing, OwnInitialize, DeclaredNothing},
		{Fresh, OwnUnkept, DeclaredNothing},
		{Preparing, MoreDeclared, DeclaredOwn},
		{Opening, MoreDeclared, DeclaredNothing},
		{Fresh, MoreDeclared, DeclaredOwn},
		{Awake, MoreDeclared, DeclaredNothing},
		{GivenUp, OwnInitialize, DeclaredOwn},
		{Finishing, MoreDeclared, DeclaredNothing},
		{Drained, OwnInitialize, DeclaredNothing},
		{Awake, Lost, DeclaredNothing},
	} {
		next, _, ok := Next(State{row.phase, ToldResult, DeclaredNothing}, row.event)
		if !ok || next.Declared != row.want {
			t.Errorf("%s, %s: got %s, %v, want %s", row.phase, row.event, next.Declared, ok, row.want)
		}
	}
}

func TestTakes(t *testing.T) {
	for _, row := range []struct {
		phases                       []Phase
		request, retry, notification Verdict
	}{
		{[]Phase{Recalling, RecallingNow, Asleep, Waking, Preparing, Opening, Pausing}, Wait, Wait, Wait},
		{[]Phase{Fresh}, Use, Use, Use},
		{[]Phase{Awake}, Pass, Pass, Pass},
		{[]Phase{Refusing, Drained, Dismissed, Closed}, Refuse, Refuse, Refuse},
		{[]Phase{GivenUp}, Refuse, Wait, Refuse},
		{[]Phase{Finishing}, Refuse, Refuse, Pass},
	} {
		for _, p := range row.phases {
			request, retry, notification := p.Takes(true, false), p.Takes(true, true), p.Takes(false, true)
			if request != row.request || retry != row.retry || notification != row.notification {
				t.Errorf("%s: got %s, %s, %s, want %s, %s, %s", p, request, retry, notification, row.request, row.retry, row.notification)
			}
		}
	}
}

// Lists are answered from what was told while no session has the client's messages.
func TestAnswersLists(t *testing.T) {
	answer := []Phase{Recalling, RecallingNow, Asleep, Waking, Preparing, Pausing, Refusing, GivenUp}
	for _, phase := range phases {
		for _, told := range tolds {
			want := slices.Contains(answer, phase) && (told == ToldNearest || told == ToldLists)
			if got := (State{phase, told, DeclaredNothing}).AnswersLists(); got != want {
				t.Errorf("%s, %s: got %v, want %v", phase, told, got, want)
			}
		}
	}
}

func TestShownIsAStateOfAConnection(t *testing.T) {
	shown := map[connstate.State][]Phase{
		connstate.Initializing: {Recalling, RecallingNow, Waking, Preparing},
		connstate.Resting:      {Asleep},
		connstate.Ready:        {Opening, Fresh, Awake},
		connstate.Failed:       {Pausing, Refusing, GivenUp},
		connstate.Draining:     {Finishing, Drained, Dismissed},
		connstate.Closed:       {Closed},
	}
	count := 0
	for state, all := range shown {
		for _, phase := range all {
			count++
			if phase.Shown() != state {
				t.Errorf("%s: got %s, want %s", phase, phase.Shown(), state)
			}
		}
	}
	if count != len(phases) {
		t.Errorf("%d phases are shown, want %d", count, len(phases))
	}
}

// The condition of each phase, without and with lists that memory answers.
func TestConditionOfEachPhase(t *testing.T) {
	type conditions struct{ without, with asker.Condition }
	rows := map[Phase]conditions{
		Recalling:    {asker.Asking, asker.Known},
		RecallingNow: {asker.Asking, asker.Known},
		Asleep:       {asker.Asking, asker.Known}, // nothing but lists of memory leads there
		Waking:       {asker.Starting, asker.Known},
		Preparing:    {asker.Up, asker.Up},
		Opening:      {asker.Up, asker.Up},
		Fresh:        {asker.Up, asker.Up},
		Awake:        {asker.Up, asker.Up},
		Pausing:      {asker.Failed, asker.Known},
		Refusing:     {asker.Failed, asker.Known},
		GivenUp:      {asker.Failed, asker.Known},
		Finishing:    {asker.Gone, asker.Gone},
		Drained:      {asker.Gone, asker.Gone},
		Dismissed:    {asker.Gone, asker.Gone},
		Closed:       {asker.Gone, asker.Gone},
	}
	for _, phase := range phases {
		want, has := rows[phase]
		if !has {
			t.Errorf("%s has no row", phase)
		}
		for _, told := range tolds {
			condition := want.without
			if told == ToldLists || told == ToldNearest {
				condition = want.with
			}
			if got := (State{Phase: phase, Told: told}).Condition(); got != condition {
				t.Errorf("%s, told %s: the condition is %s, want %s", phase, told, got, condition)
			}
		}
	}
}
