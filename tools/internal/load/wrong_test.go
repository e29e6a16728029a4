package load_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// foreign is a secret of another run.
const foreign = "leaktest-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// wrong is a fault of a server, and what the run must count for it.
type wrong struct {
	call func(s *fakeServer, from *link, r request)
	want []load.Fault
	// may be counted too.
	may []load.Fault
	// patience is the Timeout of a run in which answers do not come.
	patience time.Duration
	both     bool
}

// once lets a server do right in all calls but one.
func once(do func(s *fakeServer, from *link, r request)) func(s *fakeServer, from *link, r request) {
	return func(s *fakeServer, from *link, r request) {
		if s.calls == 20 {
			do(s, from, r)
		} else {
			s.echo(from, r)
		}
	}
}

// also lets a server do something beside a right answer, once.
func also(do func(s *fakeServer, from *link, r request)) func(s *fakeServer, from *link, r request) {
	return once(func(s *fakeServer, from *link, r request) {
		do(s, from, r)
		s.echo(from, r)
	})
}

// swap holds two calls that match, and exchanges their answers.
func swap(match func(a, b heldCall) bool) func(s *fakeServer, from *link, r request) {
	return func(s *fakeServer, from *link, r request) {
		now := heldCall{from, r}
		at := slices.IndexFunc(s.held, func(h heldCall) bool { return match(h, now) })
		switch {
		case s.done || s.calls < 20:
			s.echo(from, r)
		case at < 0:
			s.held = append(s.held, now)
		default:
			h := s.held[at]
			s.text(h.from, h.ID, r.secret())
			s.text(from, r.ID, h.secret())
			for _, k := range slices.Delete(s.held, at, at+1) {
				s.echo(k.from, k.request)
			}
			s.done = true
		}
	}
}

var wrongs = map[string]wrong{
	"Broadcast": {want: []load.Fault{load.Crossed, load.Duplicated}, may: []load.Fault{load.Unknown, load.StrayProgress}, call: func(s *fakeServer, _ *link, r request) {
		for _, l := range s.links {
			s.echo(l, r)
		}
	}},
	"SwapOfClients": {want: []load.Fault{load.Crossed}, call: swap(func(a, b heldCall) bool { return a.from != b.from })},
	"SwapInAClient": {want: []load.Fault{load.Crossed}, call: swap(func(a, b heldCall) bool { return a.from == b.from })},
	"AnotherRun": {want: []load.Fault{load.Crossed}, call: once(func(s *fakeServer, from *link, r request) {
		s.text(from, r.ID, foreign)
	})},
	"ErrorOfAnother": {want: []load.Fault{load.Crossed}, call: once(func(_ *fakeServer, from *link, r request) {
		from.event("message", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":%q}}`, r.ID, foreign))
	})},
	"NoSecret": {want: []load.Fault{load.Unmarked}, call: once(func(s *fakeServer, from *link, r request) { s.text(from, r.ID, "hi") })},
	// A slow machine is late by itself, where the patience is short.
	"Lost": {want: []load.Fault{load.Lost}, may: []load.Fault{load.Late}, patience: 5 * time.Second,
		call: once(func(*fakeServer, *link, request) {})},
	"Late": {want: []load.Fault{load.Lost, load.Late}, patience: 5 * time.Second, call: func(s *fakeServer, from *link, r request) {
		if s.calls == 20 {
			s.held = []heldCall{{from, r}}
			return
		}
		// The next calls are made when this one was given up.
		for _, h := range s.held {
			if r.number() > h.number()+1 {
				h.from.progress(h.Params.Meta.Token, h.secret())
				s.text(h.from, h.ID, h.secret())
				s.held = nil
			}
		}
		s.echo(from, r)
	}},
	"Twice": {want: []load.Fault{load.Duplicated}, call: once(func(s *fakeServer, from *link, r request) {
		s.echo(from, r)
		s.text(from, r.ID, r.secret())
	})},
	"NobodysID": {want: []load.Fault{load.Unknown}, call: also(func(s *fakeServer, from *link, _ request) { s.text(from, json.RawMessage("77777"), "hi") })},
	"TextID":    {want: []load.Fault{load.Unknown}, call: also(func(s *fakeServer, from *link, _ request) { s.text(from, json.RawMessage(`"1"`), "hi") })},
	"AnswerToNobodyWithASecret": {want: []load.Fault{load.Unknown, load.Crossed}, call: also(func(s *fakeServer, from *link, r request) {
		s.text(s.other(from), json.RawMessage("77777"), r.secret())
	})},
	"ProgressToAnother": {want: []load.Fault{load.Crossed}, may: []load.Fault{load.StrayProgress}, call: also(func(s *fakeServer, from *link, r request) {
		s.other(from).progress(r.Params.Meta.Token, r.secret())
	})},
	"ProgressOfNobody": {want: []load.Fault{load.StrayProgress}, call: also(func(_ *fakeServer, from *link, _ request) { from.progress(json.RawMessage("77777"), "") })},
	"ProgressAfterTheAnswer": {want: []load.Fault{load.StrayProgress}, call: once(func(s *fakeServer, from *link, r request) {
		s.echo(from, r)
		from.progress(r.Params.Meta.Token, "")
	})},
	"ProgressWithoutSecret": {want: []load.Fault{load.Unmarked}, call: func(s *fakeServer, from *link, r request) {
		if r.Params.Name == "progress" {
			from.progress(r.Params.Meta.Token, "half")
		}
		s.text(from, r.ID, r.secret())
	}},
	"StartWithASecret": {want: []load.Fault{load.Crossed}, may: []load.Fault{load.StrayProgress}, call: also(func(s *fakeServer, from *link, r request) {
		s.other(from).start(r.Params.Meta.Token, r.secret())
	})},
	"ProgressThatIsNone": {want: []load.Fault{load.Malformed}, call: also(func(_ *fakeServer, from *link, _ request) {
		from.event("message", `{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}`)
	})},
	"LogLineOfAnother": {want: []load.Fault{load.Crossed}, call: also(func(s *fakeServer, from *link, r request) {
		s.other(from).event("message", fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"text":%q}}}`, "leaktest-"+r.secret()))
	})},
	"RequestOfAnother": {want: []load.Fault{load.Crossed}, call: also(func(s *fakeServer, from *link, r request) {
		s.other(from).event("message", fmt.Sprintf(`{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"text":%q}}`, r.secret()))
	})},
	"AnnouncementOfAnother": {want: []load.Fault{load.Crossed}, call: also(func(s *fakeServer, from *link, r request) {
		s.other(from).event("mcp-response", fmt.Sprintf(`{"jsonrpc":"2.0","id":"auto-2","result":{"instructions":%q}}`, r.secret()))
	})},
	"NoJSON":         {want: []load.Fault{load.Malformed}, call: also(func(_ *fakeServer, from *link, _ request) { from.event("message", "hello") })},
	"SecondEndpoint": {want: []load.Fault{load.Malformed}, call: also(func(_ *fakeServer, from *link, _ request) { from.event("endpoint", "/post/1") })},
	"StreamEnds": {want: []load.Fault{load.Cut, load.Lost}, call: once(func(_ *fakeServer, from *link, _ request) {
		close(from.cut)
	})},
	"OneNameAlone": {both: true, want: []load.Fault{load.Lost}, may: []load.Fault{load.Late}, patience: 5 * time.Second, call: once(func(_ *fakeServer, from *link, r request) {
		from.event("message", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"text":%q}}`, r.ID, r.secret()))
	})},
	"TwiceUnderAName": {both: true, want: []load.Fault{load.Duplicated}, call: once(func(s *fakeServer, from *link, r request) {
		s.echo(from, r)
		from.event("mcp-response", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"text":%q}}`, r.ID, r.secret()))
	})},
}

func TestWrongServersAreDetected(t *testing.T) {
	for name, w := range wrongs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&fakeServer{call: w.call, both: w.both}).serve(t)
			opts := quick()
			opts.ProgressTool, opts.ProgressArgument, opts.NoInitialize = "progress", "message", w.both
			if w.patience > 0 {
				opts.Timeout = w.patience
			}
			r := mustRun(t, s.url, opts)
			if r.Verdict() != load.Faulty {
				t.Errorf("verdict = %v, want faulty", r.Verdict())
			}
			for kind, count := range r.Faults {
				f := load.Fault(kind)
				must, may := slices.Contains(w.want, f), slices.Contains(w.may, f)
				if must != (count > 0) && !may {
					t.Errorf("%s = %d; all: %v", f, count, r.Faults)
				}
			}
			told := func(line string) bool { return strings.HasPrefix(line, w.want[0].String()+": ") }
			if !slices.ContainsFunc(r.Evidence, told) {
				t.Errorf("evidence = %q, want a line for %v", r.Evidence, w.want[0])
			}
		})
	}
}
