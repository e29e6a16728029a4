package remote_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The kinds of server that there are.

// legacyServer is one of MCP 2025: it does not know server/discover.
func legacyServer(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	if m != nil && m.Method == "server/discover" {
		http.Error(w, "Bad Request: no session", http.StatusBadRequest)
		return
	}
	upstreamtest.Calls(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) { upstreamtest.Result(w, m) })(w, r, m)
}

// modernServer is one of MCP 2026-07-28 alone.
func modernServer(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	switch {
	case m == nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Header.Get("MCP-Protocol-Version") != "2026-07-28" || r.Header.Get("Mcp-Method") != m.Method:
		w.WriteHeader(http.StatusBadRequest)
		upstreamtest.AnswerJSON(w, string(jsonrpc.NewError(m.ID, jsonrpc.Errorf(-32020, "HeaderMismatch"))))
	case m.Method == "server/discover":
		upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`))))
	default:
		upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte(`{"resultType":"complete"}`))))
	}
}

// sseOnly is one of MCP 2024-11-05, which answers a POST to its stream with code.
func sseOnly(code int) upstreamtest.Handler {
	var streams sync.Map // of the sessions: an old one may not have noticed its end
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == http.MethodGet:
			id, mine := rand.Text(), make(chan []byte, 10)
			streams.Store(id, mine)
			send := upstreamtest.Stream(w)
			send("event: endpoint\ndata: /messages?session=%s", id)
			for {
				select {
				case text := <-mine:
					send("data: %s", text)
				case <-r.Context().Done():
					return
				}
			}
		case r.URL.Path != "/messages":
			w.WriteHeader(code)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		mine, _ := streams.Load(r.URL.Query().Get("session"))
		if m.Method == "initialize" {
			mine.(chan []byte) <- upstreamtest.InitAnswer(m)
		} else if m.Kind == jsonrpc.Request {
			mine.(chan []byte) <- jsonrpc.NewResult(m.ID, []byte("{}"))
		}
	}
}

// asked says in short what a server was asked, without the GETs of sessions, which may
// come at any time.
func asked(s *upstreamtest.Scripted) (all []string) {
	for _, v := range s.Seen() {
		if m, err := jsonrpc.Parse([]byte(v.Body)); err == nil {
			v.Method = m.Method
		}
		if v.Method != "GET" || v.Header.Get("Mcp-Session-Id") == "" {
			all = append(all, v.Method)
		}
	}
	return all
}

// greet opens a session, calls something in it, and closes it.
func greet(t *testing.T, up jsonrpc.Dialer) {
	t.Helper()
	k := upstreamtest.DialTalk(t, up)
	k.Send(upstreamtest.Initialize)
	if got, _ := k.Recv(); !strings.Contains(got, `"id":1,"result"`) && !strings.Contains(got, `"result":{"protocolVersion"`) {
		t.Fatalf("initialize got %s", got)
	}
	k.Send(upstreamtest.Initialized)
	k.Ping(2)
	ssetest.Want(t, "Close", k.Conn.Close(), nil)
}

// The initialize that decides is the session's own.
func TestServerIsFoundOutInOrderAndRemembered(t *testing.T) {
	for name, tt := range map[string]struct {
		do            upstreamtest.Handler
		first, second []string
	}{
		"stateless": {modernServer, []string{"server/discover"}, []string{"server/discover"}},
		"streamable": {legacyServer,
			[]string{"server/discover", "initialize", "notifications/initialized"}, []string{"initialize", "notifications/initialized"}},
		"SSE, POST is 405": {sseOnly(405), []string{"server/discover", "initialize", "GET", "initialize"}, []string{"GET", "initialize"}},
		"SSE, POST is 400": {sseOnly(400), []string{"server/discover", "initialize", "GET", "initialize"}, []string{"GET", "initialize"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := upstreamtest.Serve(t, tt.do)
			up := remote.URL{Address: s.URL + "/mcp"}.Observed(nil, nil)
			greet(t, up)
			if got := asked(s); len(got) < len(tt.first) || !slices.Equal(got[:len(tt.first)], tt.first) {
				t.Errorf("first asked %q, want %q", got, tt.first)
			}
			n := len(asked(s))
			greet(t, up)
			if got := asked(s)[n:]; len(got) < len(tt.second) || !slices.Equal(got[:len(tt.second)], tt.second) {
				t.Errorf("then asked %q, want %q", got, tt.second)
			}
		})
	}
}

func TestNothingIsFoundOutWhereTheTransportIsGiven(t *testing.T) {
	for transport, tt := range map[string]struct {
		do   upstreamtest.Handler
		want string
	}{
		remote.TransportStreamable: {legacyServer, "initialize"},
		remote.TransportSSE:        {sseOnly(405), "GET"},
		remote.TransportStateless:  {modernServer, "server/discover"},
	} {
		s := upstreamtest.Serve(t, tt.do)
		greet(t, remote.URL{Address: s.URL, Transport: transport})
		ssetest.Want(t, "what "+transport+" asked first", asked(s)[0], tt.want)
	}
	s := upstreamtest.Serve(t, legacyServer)
	_, err := remote.URL{Address: s.URL, Transport: remote.TransportStateless}.Dial(t.Context())
	ssetest.WantText(t, "Dial", err, "the server does not speak MCP 2026-07-28: set another transport, or none")
}

// go-sdk with sessions opens one for each POST without.
func TestSessionOfTheQuestionIsEnded(t *testing.T) {
	s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m != nil && m.Method == "server/discover" {
			w.Header().Set("Mcp-Session-Id", "wasted")
			upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte(`{"supportedVersions":["2025-11-25"],"capabilities":{}}`))))
			return
		}
		legacyServer(w, r, m)
	})
	greet(t, remote.URL{Address: s.URL})
	ended := s.Find(upstreamtest.Method("DELETE"))
	if len(ended) != 2 || ended[0].Header.Get("Mcp-Session-Id") != "wasted" || ended[1].Header.Get("Mcp-Session-Id") != "s-1" {
		t.Errorf("DELETEs: %+v", ended)
	}
}

func TestErrorsOfModernServersAreUnderstood(t *testing.T) {
	for _, tt := range []struct {
		body string
		want string // of the error; empty: an initialize follows
	}{
		{`{"code":-32022,"message":"Unsupported","data":{"supported":["2025-11-25","2025-06-18"],"requested":"2026-07-28"}}`, ""},
		{`{"code":-32022,"message":"Unsupported","data":{"supported":["2027-01-01"]}}`, "the server refused server/discover: Unsupported (code -32022)"},
		{`{"code":-32020,"message":"HeaderMismatch"}`, "the server refused server/discover: HeaderMismatch (code -32020)"},
		{`{"code":-32601,"message":"Method not found"}`, ""},
		{`{"code":-32000,"message":"Bad Request: Server not initialized"}`, ""},
	} {
		s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m != nil && m.Method == "server/discover" {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":%s}`, tt.body)
				return
			}
			legacyServer(w, r, m)
		})
		conn, err := remote.URL{Address: s.URL}.Dial(t.Context())
		switch {
		case (err == nil) != (tt.want == ""), err != nil && !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: got %v", tt.body, err)
		case err == nil:
			_ = conn.Close()
			greet(t, remote.URL{Address: s.URL})
		}
	}
}

// Nothing else is tried where the server refuses access or leads elsewhere.
func TestDialFailsWhereNothingCanBeFoundOut(t *testing.T) {
	for code, want := range map[int]string{
		401: "the server refused access (401 Unauthorized): configure the credentials that it wants, for example as an Authorization header",
		307: "the server redirects to https://evil.example/mcp (307 Temporary Redirect): configure that address",
	} {
		broken := true
		s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if broken {
				w.Header().Set("Location", "https://evil.example/mcp")
				w.WriteHeader(code)
				return
			}
			legacyServer(w, r, m)
		})
		up := remote.URL{Address: strings.Replace(s.URL, "//", "//user:hunter2@", 1) + "/mcp?key=hunter2"}.Observed(nil, nil)
		_, err := up.Dial(t.Context())
		ssetest.WantText(t, "Dial", err, want, s.URL+"/mcp")
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%d: tells %v", code, err)
		}
		broken = false
		greet(t, up) // nothing wrong has been remembered
	}
}

// failures are how servers of older revisions answer a method that they do not know.
var failures = map[string]upstreamtest.Handler{
	"500, HTML": func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
		http.Error(w, "<html>oops</html>", 500)
	},
	"500, other JSON": func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
		http.Error(w, `{"error":"boom"}`, 500)
	},
	"502":       func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(502) },
	"503":       func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(503) },
	"429":       func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(429) },
	"403":       func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(403) },
	"200, text": func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { fmt.Fprint(w, "hello") },
	"closed":    func(http.ResponseWriter, *http.Request, *jsonrpc.Message) { panic(http.ErrAbortHandler) },
	"closed in the body": func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "{")
		panic(http.ErrAbortHandler)
	},
}

// A failed question tells nothing: initialize follows, and the next session asks again.
func TestOlderServersAnswerTheQuestionInAnyWay(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m != nil && m.Method == "server/discover" {
					fail(w, r, m)
					return
				}
				legacyServer(w, r, m)
			})
			greet(t, remote.URL{Address: s.URL + "/mcp"}.Observed(nil, nil))
		})
		if name == "200, text" || name == "closed in the body" { // it has answered the question
			continue
		}
		t.Run(name+", for a while", func(t *testing.T) {
			var works atomic.Bool
			s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if !works.Load() {
					fail(w, r, m)
					return
				}
				modernServer(w, r, m)
			})
			up := remote.URL{Address: s.URL + "/mcp"}.Observed(nil, nil)
			conn, err := up.Dial(t.Context())
			ssetest.Must(t, err)
			upstreamtest.Send(t, conn, upstreamtest.Initialize)
			if msg, err := conn.Recv(); err == nil && !strings.Contains(string(msg), `"error"`) {
				t.Errorf("initialize got %s", msg) // the failure of initialize itself is told
			}
			_ = conn.Close()
			works.Store(true)
			conn, err = up.Dial(t.Context())
			ssetest.Must(t, err)
			ssetest.Want(t, "the server is known to be stateless", conn.(jsonrpc.Stateless).Stateless(), true)
			_ = conn.Close()
		})
	}
}

func TestDialOfAnUnreachableServerSaysSo(t *testing.T) {
	s := upstreamtest.Serve(t, legacyServer)
	s.Server.Close()
	_, err := remote.URL{Address: s.URL + "/mcp"}.Dial(t.Context())
	ssetest.WantText(t, "Dial", err, strings.TrimPrefix(s.URL, "http://")+": nothing listens there (connection refused)")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (remote.URL{Address: s.URL + "/mcp"}).Dial(ended); err == nil {
		t.Error("Dial works with a context that has ended")
	}
}
