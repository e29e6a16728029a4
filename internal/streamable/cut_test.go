package streamable_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A GET that replaces one whose client does not read must not get events twice.
func TestNoEventComesTwice(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		c := f.backend.last()
		stalled := f.do(http.MethodGet, "", in(id)...)
		big := `{"jsonrpc":"2.0","method":"notifications/big","params":{"x":"` + strings.Repeat("x", 200<<10) + `"}}`
		_ = c.Send("", []byte(big))
		synctest.Wait() // the response is writing it, to nobody
		_ = c.Send("", []byte(note(2)))
		_ = c.Send("", []byte(note(3)))
		res := f.do(http.MethodGet, "", in(id)...)
		_ = c.Send("", []byte(note(4)))
		var got []string
		for range 3 {
			id, _ := res.next()
			got = append(got, id)
		}
		ssetest.Want(t, "events", got, "[0-2 0-3 0-4]")
		res.close()
		stalled.close()
	})
}

// A batch whose answers are large together gets all of them.
func TestLargeBatches(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
			if m.Method == "large" {
				answer(c, m.ID, jsonrpc.NewResult(m.ID, []byte(`"`+strings.Repeat("x", 600<<10)+`"`)), "")
				return
			}
			time.AfterFunc(2*second, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "") })
		}
		id := f.initialize("2025-03-26")
		res := f.post("["+request("1", "large")+","+request("2", "large")+","+request("3", "late")+"]", in(id)...)
		ssetest.WantText(t, "answers", res.rest(), `"id":1`, `"id":2`, `"id":3`)
		res.close()
	})
}

// A client that comes back when its events are gone must not get an empty success.
func TestResumeWithoutEvents(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
			time.AfterFunc(2*second, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "") })
		}
		id := f.initialize("2025-11-25")
		res := f.post(request("1", "work"), in(id)...)
		res.wantEvent("2-1", "")
		res.close()
		time.Sleep(6 * time.Minute)
		res = f.do(http.MethodGet, "", in(id, "Last-Event-ID", "2-1")...)
		if rest := res.rest(); res.StatusCode == http.StatusOK && !strings.Contains(rest, `"id":1`) {
			t.Errorf("%s with the body %q: the request never gets an answer or an error", res.Status, rest)
		}
		res.close()
	})
}

// Each call whose client comes back until its stream is over gets exactly one answer,
// its own, and each event once, whatever else happens in the session.
func TestCutsAtRandom(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
			go func() {
				for i := range rand.N(6) {
					time.Sleep(time.Duration(rand.N(300)) * time.Millisecond)
					_ = c.Send(m.ID, []byte(`{"jsonrpc":"2.0","method":"notifications/p","params":{"of":`+string(m.ID)+`,"i":`+fmt.Sprint(i)+`}}`))
				}
				time.Sleep(time.Duration(rand.N(900)) * time.Millisecond)
				answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "")
			}()
		}
		id := f.initialize("2025-11-25")
		var wg sync.WaitGroup
		for k := range 200 {
			wg.Go(func() { f.cutAtRandom(id, fmt.Sprint(k+1)) })
		}
		wg.Wait()
		f.backend.last().Close(connstate.ClosedClient)
	})
}

// cutAtRandom makes a call, and comes back for the rest each time that it has cut its stream.
func (f *fixture) cutAtRandom(session, n string) {
	res := f.post(request(n, "work"), in(session, "Accept", "text/event-stream, application/json")...)
	last, answers, seen := "", 0, map[string]bool{}
	for range 60 {
		for cut := false; !cut; cut = rand.N(6) == 0 {
			e, err := ssetest.Read(res.in)
			if err != nil {
				break
			}
			if e.IsComment() {
				continue
			}
			if seen[e.ID] || e.Data != "" && e.Data != result(n) && !strings.Contains(e.Data, `"of":`+n+`,`) {
				f.t.Errorf("call %s: the event %q came twice, or is of another: %s", n, e.ID, e.Data)
			}
			last, seen[e.ID] = e.ID, true
			if e.Data == result(n) {
				answers++
			}
		}
		res.close()
		if answers > 0 || last == "" {
			break
		}
		time.Sleep(time.Duration(rand.N(400)) * time.Millisecond)
		res = f.do(http.MethodGet, "", in(session, "Last-Event-ID", last)...)
		if res.StatusCode != http.StatusOK {
			break
		}
	}
	ssetest.Want(f.t, "answers to call "+n, answers, 1)
}

// Each of many clients that are cut at once gets its answer, whether the gateway has written
// it or not: it cannot know what a client has read.
func TestManyCutsAtOnceLoseNothing(t *testing.T) {
	for name, written := range map[string]bool{"written": true, "not written": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
				id := f.initialize("2025-11-25")
				var all []*reply
				for i := range 400 {
					all = append(all, f.post(request(fmt.Sprint(i+1), "never"), in(id, "Accept", "text/event-stream, application/json")...))
				}
				for i, r := range all {
					if !written {
						r.close()
						synctest.Wait()
					}
					answer(f.backend.last(), jsonrpc.ID(fmt.Sprint(i+1)), []byte(result(fmt.Sprint(i+1))), "")
					if written { // and, say, lost by a proxy
						_ = r.rest()
						r.close()
					}
				}
				time.Sleep(30 * second)
				for i := range all {
					r := f.do(http.MethodGet, "", in(id, "Last-Event-ID", fmt.Sprintf("%d-1", i+2))...)
					r.wantEvent(fmt.Sprintf("%d-2", i+2), result(fmt.Sprint(i+1)))
					r.wantEnd()
				}
			})
		})
	}
}

// Events that were written for POSTs that are over stay for a minute, and then until 64 to 128 more POSTs
// are over. Events that were not written stay.
func TestStreamsThatAreOverAreBounded(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		const n, cut = 300, 100
		var all []*reply
		for i := range n {
			all = append(all, f.post(request(fmt.Sprint(i+1), "never"), in(id, "Accept", "text/event-stream, application/json")...))
		}
		c := f.backend.last()
		for i, r := range all {
			if i < cut {
				r.close()
				synctest.Wait()
			}
			answer(c, jsonrpc.ID(fmt.Sprint(i+1)), []byte(result(fmt.Sprint(i+1))), "")
			if i >= cut {
				_ = r.rest()
				r.close()
			}
		}
		time.Sleep(2 * time.Minute)
		for range 100 { // calls one after the other
			r := f.post(request("1", "echo"), in(id, "Accept", "text/event-stream, application/json")...)
			_ = r.rest()
			r.close()
		}
		left := 0
		for i := range n + 102 {
			r := f.do(http.MethodGet, "", in(id, "Last-Event-ID", fmt.Sprintf("%d-0", i+1))...)
			if r.StatusCode == http.StatusOK {
				left++
			}
			if 1 <= i && i <= cut && !strings.Contains(r.rest(), result(fmt.Sprint(i))) {
				t.Errorf("answer %d is lost", i)
			}
			r.close()
		}
		if left > 128+cut {
			t.Errorf("%d streams that are over are still there", left)
		}
	})
}

// A response that another one replaces ends at once, also in the middle of a write, and
// gives back what it held.
func TestReplacedResponsesHoldNothing(t *testing.T) {
	bubble(t, streamable.Options{Options: httpcheck.Options{WriteTimeout: time.Hour}}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		first := f.post(request("1", "never"), in(id)...)
		first.wantEvent("2-1", "")
		large := `{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 3<<20) + `"}`
		_ = f.backend.last().Send("1", []byte(large))
		stalled := []*reply{first}
		for range 20 {
			stalled = append(stalled, f.do(http.MethodGet, "", in(id, "Last-Event-ID", "2-1")...))
			synctest.Wait()
			if held := f.queued(); held > 4<<20 {
				t.Fatalf("%g bytes are held", held)
			}
		}
		for _, res := range stalled {
			res.close()
		}
	})
}
