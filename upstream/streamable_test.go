package upstream_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// MCP 2025-11-25, basic/transports: "session management" and "protocol version
// header".
func TestRequestsCarryWhatTheInitializeSettled(t *testing.T) {
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answerJSON(w, result2)
	}))
	up := streamable(s)
	up.Header = http.Header{"authorization": {"Bearer k"}}
	k := open(t, up)
	k.send(call2)
	if got, id := k.recv(); got != result2 || id != "2" {
		t.Errorf("got %s with request %s", got, id)
	}
	s.wait(t, 1, method("GET"))
	if err := k.conn.Close(); err != nil {
		t.Error(err)
	}
	for _, v := range s.seen() {
		want := [2]string{"s-1", "2025-06-18"}
		if strings.Contains(v.body, `"initialize"`) {
			want = [2]string{}
		}
		if got := [2]string{v.header.Get("Mcp-Session-Id"), v.header.Get("MCP-Protocol-Version")}; got != want {
			t.Errorf("%s %.60s: session and version %q, want %q", v.method, v.body, got, want)
		}
		if got := v.header.Get("Authorization"); got != "Bearer k" {
			t.Errorf("%s: Authorization %q", v.method, got)
		}
	}
	var order []string
	for _, v := range s.seen() {
		if v.method != "GET" {
			order = append(order, v.method)
		}
	}
	if want := []string{"POST", "POST", "POST", "DELETE"}; !slices.Equal(order, want) {
		t.Errorf("the server got %q, want %q", order, want)
	}
}

func TestBytesPassUnchanged(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":2,"x":1,"method":"t","params":{"z":1.0,"a":9007199254740993,"e":"\u003c"},"y":null}`
	const event = `{"jsonrpc":"2.0","method":"notifications/x","params":{"z":1.0,"a":9007199254740993},"y":1e3}`
	const ask = `{"jsonrpc":"2.0","id":9007199254740993,"method":"sampling/createMessage","q":1,"params":{"z":1.0}}`
	const answer = `{"jsonrpc":"2.0","result":{"z":1.0,"a":9007199254740993},"id":9007199254740993,"x":1}`
	const fault = `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"m","more":1,"data":9007199254740993},"x":2}`
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil || m.Kind == jsonrpc.Response {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		send := stream(w)
		send("event: message\ndata: %s", event)
		send("data: %s", ask)
		send("data: %s", fault)
	}))
	k := open(t, streamable(s))
	k.send(call)
	for _, want := range []string{event, ask, fault} {
		if got, id := k.recv(); got != want || id != "2" {
			t.Errorf("got %s with request %q, want %s", got, id, want)
		}
	}
	k.send(answer)
	s.wait(t, 1, posted(answer))
	s.wait(t, 1, posted(call))
}

func TestNothingIsPostedBeforeInitializedIsAccepted(t *testing.T) {
	accept := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m != nil && m.Method == "notifications/initialized" {
			<-accept
		}
		session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m == nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
			} else {
				answerJSON(w, result2)
			}
		})(w, r, m)
	})
	k := open(t, streamable(s))
	k.send(call2)
	s.wait(t, 1, posted("notifications/initialized"))
	if got := s.find(posted("tools/call")); len(got) > 0 {
		t.Errorf("posted before: %+v", got)
	}
	close(accept)
	if got, _ := k.recv(); got != result2 {
		t.Errorf("got %s", got)
	}
}

func TestNotificationsArePostedInOrder(t *testing.T) {
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		w.WriteHeader(http.StatusAccepted)
	}))
	k := open(t, streamable(s))
	const n = 50
	for i := range n {
		k.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/n","params":{"i":%d}}`, i))
	}
	got := s.wait(t, n, posted("notifications/n"))
	for i, v := range got {
		if !strings.Contains(v.body, fmt.Sprintf(`"i":%d}`, i)) {
			t.Errorf("number %d is %s", i, v.body)
		}
	}
}

func TestRequestsArePostedAtTheSameTime(t *testing.T) {
	const n = 20
	var all sync.WaitGroup
	all.Add(n)
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		all.Done()
		all.Wait()
		answerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
	}))
	k := open(t, streamable(s))
	for i := range n {
		k.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i+2))
	}
	seen := make(map[jsonrpc.ID]bool)
	for range n {
		_, id := k.recv()
		seen[id] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d answered", len(seen), n)
	}
}

// A server that answers its POST only when it has had the next message must not
// hang the session.
func TestASlowPostHoldsUpTheNextForASecondOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := serveHere(session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m != nil && m.Method == "notifications/first" {
				<-release
			} else if m != nil && m.Method == "notifications/second" {
				close(release)
			}
			w.WriteHeader(http.StatusAccepted)
		}))
		k := open(t, streamable(s))
		k.send(`{"jsonrpc":"2.0","method":"notifications/first"}`)
		k.send(`{"jsonrpc":"2.0","method":"notifications/second"}`)
		s.wait(t, 2, func(v visit) bool { return strings.Contains(v.body, "first") || strings.Contains(v.body, "second") })
	})
}

func TestAnswersWithoutAnIDBelongToTheirPost(t *testing.T) {
	for name, body := range map[string]string{
		"null":    `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`,
		"missing": `{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { answerJSON(w, body) }))
			k := open(t, streamable(s))
			k.send(call2)
			if f := k.fails(); string(f.ID) != "2" || f.Error.Code != -32000 {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// MCP 2025-03-26 lets a server batch what it sends.
func TestBatchesAreTakenApart(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/x"}`
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		stream(w)("data: [%s, %s]", note, result2)
	}))
	k := open(t, streamable(s))
	k.send(call2)
	for _, want := range []string{note, result2} {
		if got, id := k.recv(); got != want || id != "2" {
			t.Errorf("got %s with %s", got, id)
		}
	}
}

func TestUnusableAnswersAreErrorsOfTheirRequest(t *testing.T) {
	for _, tt := range []struct {
		name, kind, body string
		status           int
		want             string
	}{
		{"accepted", "", "", 202, "it is an empty 202 Accepted"},
		{"page", "text/html", "<html>", 200, "neither JSON nor an event stream"},
		{"no JSON", "application/json", "hello", 200, "it is no JSON-RPC message"},
		{"half", "application/json", `{"jsonrpc":"2.0","id":2,"result":{`, 200, "it is no JSON-RPC message"},
		{"binary", "application/json", "\x00\xff\xfe", 200, "it is no JSON-RPC message"},
		{"empty", "application/json", "", 200, "the response ended without it"},
		{"empty stream", "text/event-stream", ": nothing\n\n", 200, "the response ended without it"},
		{"bad event", "text/event-stream", "data: hello\n\n", 200, "it is no JSON-RPC message"},
		{"half an event", "text/event-stream", "data: " + result2, 200, "the response ended without it"},
		{"another's", "application/json", `{"jsonrpc":"2.0","id":77,"result":{}}`, 200, "the response ended without it"},
		{"too long", "application/json", `{"x":"` + strings.Repeat("x", 2000) + `"}`, 200, "it is over the limit of 2000 bytes"},
		{"too long an event", "text/event-stream", "data: " + strings.Repeat("x", 2001) + "\n\n", 200, "it is over the limit of 2000 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case m == nil:
					w.WriteHeader(http.StatusMethodNotAllowed)
				case m.ID == "3":
					answerJSON(w, `{"jsonrpc":"2.0","id":3,"result":{}}`)
				default:
					w.Header().Set("Content-Type", tt.kind)
					w.WriteHeader(tt.status)
					io.WriteString(w, tt.body)
				}
			}))
			up := streamable(s)
			up.MaxMessageBytes = 2000
			k := open(t, up)
			k.send(call2)
			for {
				msg, _ := k.recv()
				if strings.Contains(msg, `"id":77`) {
					continue // dropped by who knows what is in flight
				}
				if !strings.Contains(msg, `"id":2,`) || !strings.Contains(msg, tt.want) || !strings.Contains(msg, `"retryable":false`) {
					t.Errorf("got %s, want %q", msg, tt.want)
				}
				break
			}
			k.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
			if got, _ := k.recv(); !strings.Contains(got, `"id":3,"result"`) {
				t.Errorf("afterwards got %s", got)
			}
		})
	}
}

func TestSendAfterTheEndSaysWhy(t *testing.T) {
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { w.WriteHeader(http.StatusNotFound) }))
	k := open(t, streamable(s))
	k.send(call2)
	err := k.ended()
	if got := k.conn.Send([]byte(call2)); got == nil || got.Error() != err.Error() {
		t.Errorf("Send gives %v, Recv %v", got, err)
	}
	_ = k.conn.Close()
	if got := k.conn.Send([]byte(initialized)); got == nil {
		t.Error("Send works after Close")
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		stream(w)
		<-r.Context().Done()
	}))
	k := open(t, streamable(s))
	k.send(call2)
	s.wait(t, 1, posted("tools/call"))
	s.wait(t, 1, method("GET"))
	begin := time.Now()
	if err := k.conn.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("Close took %s", took)
	}
	if a := k.next(); !errors.Is(a.err, jsonrpc.ErrClosed) {
		t.Errorf("Recv gives %v", a.err)
	}
	if got := s.find(method("DELETE")); len(got) != 1 {
		t.Errorf("%d DELETEs", len(got))
	}
	_ = k.conn.Close()
}

func TestCloseOfAServerThatHangsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if r.Method == http.MethodDelete {
				<-r.Context().Done()
				return
			}
			session(nil)(w, r, m)
		})
		k := open(t, streamable(s))
		begin := time.Now()
		_ = k.conn.Close()
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("Close took %s", took)
		}
	})
}

func TestSendIsBounded(t *testing.T) {
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		<-r.Context().Done()
	}))
	k := open(t, streamable(s))
	large := strings.Repeat("x", 1<<20)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = k.conn.Send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"m","params":{"a":"%s"}}`, n+10, large))
	}
	if !errors.Is(err, jsonrpc.ErrBusy) || n != 8 {
		t.Errorf("after %d got %v", n, err)
	}
}
