package connstate_test

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// begin is BeginRequest, for its error.
func begin(w *world, id, method string) error {
	_, err := w.c.BeginRequest(request(w.t, id, method))
	return err
}

func TestRequestsAreBoundedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{MaxPending: 2}, connstate.Client{})
		began := time.Now()
		first := w.ask("1", "tools/list")
		time.Sleep(time.Second)
		second := w.ask(`"1"`, "tools/call") // another id
		ssetest.WantError(t, "the same id", begin(w, "1", "x"), connstate.ErrDuplicate)
		_, ok := connstate.ForTransport{Connection: w.c.Connection}.Arrive(request(t, "1", "x"))
		ssetest.Want(t, "the same id arrives", ok, false)
		ssetest.WantError(t, "over the bound", begin(w, "3", "x"), connstate.ErrTooManyPending)
		if n := w.series("mcp_sse_requests_in_flight"); n != 2 || w.c.InFlight() != 2 {
			t.Errorf("got %v and %d in flight, want 2", n, w.c.InFlight())
		}
		if r := w.c.Request("1"); r != first || r.Method != "tools/list" || r.Started != began || w.c.Request("2") != nil {
			t.Errorf("got %v, want tools/list of %v", r, began)
		}
		finish(first, "")
		finish(w.ask("1", "tools/list"), "-32601") // the id is free again
		finish(second, metrics.ErrorTimeout)
		all := ssetest.Series(t, w.prom)
		for name, want := range map[string]float64{
			"mcp_sse_requests_in_flight": 0,
			`mcp_server_operation_duration_seconds{error_type="",mcp_method_name="tools/list",network_transport="tcp"}`:        1,
			`mcp_server_operation_duration_seconds{error_type="-32601",mcp_method_name="tools/list",network_transport="tcp"}`:  1,
			`mcp_server_operation_duration_seconds{error_type="timeout",mcp_method_name="tools/call",network_transport="tcp"}`: 1,
			`mcp_server_operation_duration_seconds{error_type="busy",mcp_method_name="_other",network_transport="tcp"}`:        1,
		} {
			equal(t, name, all[name], want)
		}
		if s := w.c.Snapshot(); s.RequestsDone != 3 || s.InFlight != 0 {
			t.Errorf("got %d done and %d in flight, want 3 and 0", s.RequestsDone, s.InFlight)
		}
	})
}

func TestCloseHappensOnce(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	r := w.ask("1", "a")
	var stops, closed atomic.Int32
	w.c.OnClose(func() { stops.Add(1) })
	var all sync.WaitGroup
	for _, reason := range []connstate.Reason{connstate.ClosedIdle, connstate.ClosedSlow, connstate.ClosedClient, connstate.ClosedShutdown} {
		all.Go(func() {
			if w.c.Close(reason) {
				closed.Add(1)
				equal(t, "reason", w.c.Reason(), reason)
			}
		})
	}
	all.Wait()
	<-w.c.Done()
	if closed.Load() != 1 || stops.Load() != 1 || w.handler.closures() != 1 {
		t.Errorf("closed %d times, stream stopped %d times, handler told %d times", closed.Load(), stops.Load(), w.handler.closures())
	}
	ssetest.WantError(t, "BeginRequest", begin(w, "2", "a"), connstate.ErrClosed)
	if finish(r, "") {
		t.Error("answered a request after the end")
	}
	ssetest.WantError(t, "Push", w.c.Push(connstate.Event{Name: "x"}), connstate.ErrClosed)
	equal(t, "requests ended by the close", w.series(`mcp_server_operation_duration_seconds{error_type="closed",mcp_method_name="_other",network_transport="tcp"}`), 1)
}

// A handler or stream that comes after the end hears of it at once.
func TestLatecomersAreToldOfTheEnd(t *testing.T) {
	r := connstate.NewRegistry(connstate.Limits{}, connstate.Options{})
	opened, err := r.Open(connstate.Client{})
	must(t, err)
	c := wholeOf(opened)
	c.Close(connstate.ClosedShutdown)
	h := &handler{}
	c.Bind(h)
	stopped := false
	c.OnClose(func() { stopped = true })
	if h.closures() != 1 || !stopped {
		t.Errorf("handler told %d times, stream stopped %v", h.closures(), stopped)
	}
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{AnnounceDelay: -1}, connstate.Client{
			Addr: addr("192.0.2.7"), Principal: "alice", UserAgent: "agent/1",
		})
		opened := time.Now()
		first := w.c.Snapshot()
		if first.State != connstate.Initializing || !first.Ready.IsZero() || !first.FirstByte.IsZero() || !first.LastIn.IsZero() || !first.LastOut.IsZero() || first.Failures != nil {
			t.Errorf("at the start: got %+v", first)
		}
		w.attach(1)
		time.Sleep(time.Second)
		w.c.SawFirstByte()
		w.c.SawAttempt()
		w.c.SawFailure(metrics.PhaseRequestProcessing, metrics.ReasonTimeout)
		w.c.SawAttempt()
		w.c.SawServer(connstate.Server{Name: "played", Version: "1.0", ProtocolVersion: "2025-11-25"})
		w.c.Observe(parse(t, list), "")
		w.ask("1", "tools/list")
		w.wait(parse(t, list), "waits")
		time.Sleep(time.Second)
		must(t, w.c.Send("", []byte("xy")))
		w.stream.write(1)
		must(t, w.c.Send("", []byte("xyz")))
		w.c.SawWrite()
		w.c.SawHeartbeat()
		got := w.c.Snapshot()
		want := connstate.Snapshot{
			ID: w.c.ShortID(), State: connstate.Initializing, Since: opened, Remote: "192.0.2.7", Principal: "alice", UserAgent: "agent/1",
			Opened: opened, FirstByte: opened.Add(time.Second), LastIn: opened.Add(time.Second), LastOut: opened.Add(2 * time.Second),
			Queued: 1, InFlight: 1, UnwrittenBytes: connstate.Event{Data: []byte("xyz")}.Size(),
			MessagesIn: 1, BytesIn: int64(len(list)), MessagesOut: 2, BytesOut: 5, Heartbeats: 1, Attempts: 2,
			Failures:    map[string]int{metrics.PhaseRequestProcessing: 1},
			LastFailure: &connstate.Failure{Phase: metrics.PhaseRequestProcessing, Reason: metrics.ReasonTimeout, At: opened.Add(time.Second)},
			Initialized: &connstate.Server{Name: "played", Version: "1.0", ProtocolVersion: "2025-11-25"},
		}
		checkSameJSON(t, got, want)
		w.c.SawFailure(metrics.PhaseRequestProcessing, metrics.ReasonTimeout)
		equal(t, "failures in a snapshot of before", got.Failures[metrics.PhaseRequestProcessing], 1)
		ready := time.Now()
		w.release()
		time.Sleep(time.Second)
		must(t, w.c.Move(connstate.Initializing))
		w.release()
		if s := w.c.Snapshot(); !s.Ready.Equal(ready) || !s.Since.Equal(time.Now()) || s.State != connstate.Ready {
			t.Errorf("got ready %v since %v in state %v: ready is the first time, since the last", s.Ready, s.Since, s.State)
		}
		equal(t, "observations until ready", w.series("mcp_sse_ready_seconds"), 1)
		w.c.Close(connstate.ClosedIdle)
		if s := w.c.Snapshot(); s.Reason != connstate.ClosedIdle || s.State != connstate.Closed || s.InFlight != 0 || s.Queued != 0 {
			t.Errorf("closed: got %+v", s)
		}
	})
}

func checkSameJSON(t *testing.T, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	must(t, err)
	w, err := json.Marshal(want)
	must(t, err)
	equal(t, "JSON", string(g), string(w))
}

// A client names itself when it initializes. The gateway keeps a short form of the name.
func TestSnapshotNamesTheClient(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	if c := w.c.Snapshot().Client; c != nil {
		t.Errorf("before initialize: got %+v", c)
	}
	_, err := w.c.BeginRequest(parse(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"`+strings.Repeat("xé", 40)+`","version":"2"}}}`))
	must(t, err)
	want := connstate.ClientInfo{Name: strings.Repeat("xé", 21) + "x", Version: "2"} // 64 bytes, less half a character
	if c := w.c.Snapshot().Client; c == nil || *c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
	_, err = w.c.BeginRequest(parse(t, `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"clientInfo":[1]}}`))
	must(t, err)
	equal(t, "without a valid name", *w.c.Snapshot().Client, (connstate.ClientInfo{}))
}

// Snapshots are shown to operators: they hold no id that lets its reader send
// messages, and no zero times.
func TestSnapshotKeepsTheIDSecret(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	raw, err := json.Marshal(w.c.Snapshot())
	must(t, err)
	if strings.Contains(string(raw), w.c.ID()) || strings.Contains(string(raw), "0001-01-01") {
		t.Errorf("got %s", raw)
	}
	if id, ok := rawjson.Member(raw, "id"); !ok || string(id) != `"`+w.c.ShortID()+`"` {
		t.Errorf("got id %s, want %s", id, w.c.ShortID())
	}
	if short := w.c.ShortID(); len(short) != 8 || !strings.Contains(w.c.ID(), short) {
		t.Errorf("got short id %q of %q", short, w.c.ID())
	}
}

// How far a connection came is for the log line of its end.
func TestSnapshotSaysWhatWasReached(t *testing.T) {
	for _, steps := range [][]connstate.State{{connstate.Initializing}, {connstate.Failed}, {connstate.Ready, connstate.Initializing}} {
		w := newWorld(t, connstate.Options{}, connstate.Client{})
		for _, to := range steps {
			_ = w.c.Move(to)
		}
		open := w.c.Snapshot().Reached
		w.c.Close(connstate.ClosedClient)
		if got := w.c.Snapshot().Reached; got != steps[0] || open != got {
			t.Errorf("after %v: got %v, and %v when closed, want %v", steps, open, got, steps[0])
		}
	}
}
