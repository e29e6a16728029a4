package upstream_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestNoServerAtTheAddressIsSaid(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if r.Method == http.MethodGet {
			answerJSON(w, "{}")
			return
		}
		http.NotFound(w, r)
	})
	k := dialTalk(t, upstream.URL{Address: s.URL + "/mpc?key=hunter2"})
	k.send(initialize)
	want := "no MCP server at " + s.URL + "/mpc: it answered 404 Not Found to POST and 200 OK to GET: check the path, usually /mcp or /sse, and whether it is http or https"
	if f := k.fails(); string(f.ID) != "1" || f.Error.Message != want {
		t.Errorf("got %+v", f)
	}
}

// A server of HTTP+SSE refuses the POST for its method, whatever the credentials
// are: what counts is why it refuses the stream.
func TestRefusedAccessToTheStreamIsSaid(t *testing.T) {
	for _, body := range []string{"", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"use GET here"}}`} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if r.Method == http.MethodGet {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusMethodNotAllowed)
			_, _ = io.WriteString(w, body)
		})
		k := dialTalk(t, upstream.URL{Address: s.URL + "/sse?key=hunter2"})
		k.send(initialize)
		want := "connect to " + s.URL + "/sse: the server refused access (401 Unauthorized): configure the credentials"
		if f := k.fails(); string(f.ID) != "1" || !strings.HasPrefix(f.Error.Message, want) || f.Error.Data.Reason != "unauthorized" {
			t.Errorf("%q: got %+v", body, f)
		}
	}
}

// A server that has an error of its own for the initialize is heard.
func TestRefusalOfTheInitializeIsPassedOn(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["1"]}}}`
	for code, body := range map[int]string{400: refusal, 200: refusal, 401: "", 403: ""} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m == nil || m.Method == "server/discover" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			io.WriteString(w, body)
		})
		k := dialTalk(t, upstream.URL{Address: s.URL})
		k.send(initialize)
		got, _ := k.recv()
		if body != "" && got != body || body == "" && !strings.Contains(got, "configure the credentials") {
			t.Errorf("%d: got %s", code, got)
		}
	}
}

func TestWhatIsRememberedMayTurnOutWrong(t *testing.T) {
	kinds := map[string]handler{"stateless": modernServer, "streamable": legacyServer, "SSE": sseOnly(405)}
	for was, before := range kinds {
		for is, after := range kinds {
			t.Run(was+" to "+is, func(t *testing.T) {
				var renewed atomic.Bool
				s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					if renewed.Load() {
						after(w, r, m)
					} else {
						before(w, r, m)
					}
				})
				up := upstream.URL{Address: s.URL}.Observed(nil, nil)
				greet(t, up)
				renewed.Store(true)
				greet(t, up)
				greet(t, up)
			})
		}
	}
}

// A verdict of old would succeed silently for ever with a server of both kinds.
func TestLegacyServerIsAskedAgainAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		discovers := 0
		up := inProcess(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m != nil && m.Method == "server/discover" {
				discovers++
			}
			legacyServer(w, r, m)
		})
		for i, want := range []int{1, 1, 2} {
			greet(t, up)
			if discovers != want {
				t.Errorf("session %d: asked %d times, want %d", i, discovers, want)
			}
			time.Sleep(45 * time.Minute)
		}
	})
}

// Silence is what an old server may have for a method that it does not know.
func TestServerThatDoesNotAnswerTheQuestionGetsAnInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		greet(t, inProcess(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m != nil && m.Method == "server/discover" {
				<-r.Context().Done()
				return
			}
			legacyServer(w, r, m)
		}))
		if took := time.Since(begin); took > 11*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestMessagesBeforeTheDecisionWaitForIt(t *testing.T) {
	for name, do := range map[string]handler{"streamable": legacyServer, "SSE": sseOnly(404)} {
		t.Run(name, func(t *testing.T) {
			decide := make(chan struct{})
			s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m != nil && m.Method == "initialize" {
					<-decide
				}
				do(w, r, m)
			})
			k := dialTalk(t, upstream.URL{Address: s.URL})
			k.send(initialize)
			k.send(initialized)
			k.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			close(decide)
			got := map[bool]bool{}
			for range 2 {
				msg, _ := k.recv()
				got[strings.Contains(msg, "serverInfo")] = true
			}
			if len(got) != 2 {
				t.Errorf("got %v", got)
			}
			if n := len(s.wait(t, 1, posted("notifications/initialized"))); n != 1 {
				t.Errorf("initialized was posted %d times", n)
			}
		})
	}
}

func TestFirstMessageThatIsNoInitializeIsPosted(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil || m.Method == "server/discover" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answerJSON(w, result2)
	})
	k := dialTalk(t, upstream.URL{Address: s.URL})
	k.send(call2)
	if got, _ := k.recv(); got != result2 {
		t.Errorf("got %s", got)
	}
}

func TestCloseBeforeTheDecision(t *testing.T) {
	for name, first := range map[string]string{"nothing sent": "", "initialize under way": initialize} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m != nil && m.Method == "initialize" {
					<-r.Context().Done()
					return
				}
				legacyServer(w, r, m)
			})
			k := dialTalk(t, upstream.URL{Address: s.URL})
			if first != "" {
				k.send(first)
				s.wait(t, 1, posted("initialize"))
			}
			if err := k.conn.Close(); err != nil {
				t.Error(err)
			}
			if a := k.next(); a.err == nil {
				t.Errorf("Recv gives %s", a.msg)
			}
			if err := k.conn.Send([]byte(initialize)); err == nil {
				t.Error("Send works")
			}
		})
	}
}
