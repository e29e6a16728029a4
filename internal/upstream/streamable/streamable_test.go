package streamable_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// MCP 2025-11-25, basic/transports: "session management" and "protocol version
// header".
func TestRequestsCarryWhatTheInitializeSettled(t *testing.T) {
	s := upstreamtest.Serve(t, upstreamtest.Calls(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		upstreamtest.AnswerJSON(w, upstreamtest.Result2)
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(upstreamtest.Call2)
	k.GetsOf("2", upstreamtest.Result2)
	s.Wait(t, 1, upstreamtest.Method("GET"))
	ssetest.Want(t, "Close", k.Conn.Close(), nil)
	for _, v := range s.Seen() {
		want := [2]string{"s-1", "2025-06-18"}
		if strings.Contains(v.Body, `"initialize"`) {
			want = [2]string{}
		}
		ssetest.Want(t, fmt.Sprintf("%s %.60s: session and version", v.Method, v.Body), [2]string{v.Header.Get("Mcp-Session-Id"), v.Header.Get("MCP-Protocol-Version")}, want)
	}
	ssetest.Want(t, "DELETEs", len(s.Find(upstreamtest.Method("DELETE"))), 1)
}

func TestBytesPassUnchanged(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":2,"x":1,"method":"t","params":{"z":1.0,"a":9007199254740993,"e":"\u003c"},"y":null}`
	const event = `{"jsonrpc":"2.0","method":"notifications/x","params":{"z":1.0,"a":9007199254740993},"y":1e3}`
	const ask = `{"jsonrpc":"2.0","id":9007199254740993,"method":"sampling/createMessage","q":1,"params":{"z":1.0}}`
	const answer = `{"jsonrpc":"2.0","result":{"z":1.0,"a":9007199254740993},"id":9007199254740993,"x":1}`
	const fault = `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"m","more":1,"data":9007199254740993},"x":2}`
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil || m.Kind == jsonrpc.Response {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		send := upstreamtest.Stream(w)
		send("event: message\ndata: %s", event)
		send("data: %s", ask)
		send("data: %s", fault)
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(call)
	for _, want := range []string{event, ask, fault} {
		k.GetsOf("2", want)
	}
	k.Send(answer)
	s.Wait(t, 1, upstreamtest.Posted(answer))
	s.Wait(t, 1, upstreamtest.Posted(call))
}

func TestNothingIsPostedBeforeInitializedIsAccepted(t *testing.T) {
	accept := make(chan struct{})
	s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m != nil && m.Method == "notifications/initialized" {
			<-accept
		}
		upstreamtest.Calls(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) { upstreamtest.Result(w, m) })(w, r, m)
	})
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(upstreamtest.Call2)
	s.Wait(t, 1, upstreamtest.Posted("notifications/initialized"))
	if got := s.Find(upstreamtest.Posted("tools/call")); len(got) > 0 {
		t.Errorf("posted before: %+v", got)
	}
	close(accept)
	k.Recv()
}

func TestRequestsArePostedAtTheSameTimeAndNeverCross(t *testing.T) {
	const n = 20
	var all sync.WaitGroup
	all.Add(n)
	s := upstreamtest.Serve(t, upstreamtest.Calls(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		all.Done()
		all.Wait()
		upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte(m.ID))))
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	for i := range n {
		k.Send(strings.Replace(upstreamtest.Call2, `"id":2`, fmt.Sprintf(`"id":%d`, i+10), 1))
	}
	seen := make(map[jsonrpc.ID]bool)
	for range n {
		got, id := k.Recv()
		if seen[id] = true; got != fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, id) {
			t.Errorf("got %s with request %s", got, id)
		}
	}
	ssetest.Want(t, "answers", len(seen), n)
}

func TestCloseEndsEverything(t *testing.T) {
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		upstreamtest.Stream(w)
		<-r.Context().Done()
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(upstreamtest.Call2)
	s.Wait(t, 1, upstreamtest.Posted("tools/call"))
	s.Wait(t, 1, upstreamtest.Method("GET"))
	ssetest.Want(t, "Close", k.Conn.Close(), nil)
	ssetest.WantError(t, "Recv", k.Next().Err, jsonrpc.ErrClosed)
	ssetest.Want(t, "DELETEs", len(s.Find(upstreamtest.Method("DELETE"))), 1)
	_ = k.Conn.Close()
}

func TestCloseOfAServerThatHangsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := upstreamtest.ServeHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if r.Method == http.MethodDelete {
				<-r.Context().Done()
				return
			}
			upstreamtest.Session(nil)(w, r, m)
		})
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		begin := time.Now()
		_ = k.Conn.Close()
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("Close took %s", took)
		}
	})
}
