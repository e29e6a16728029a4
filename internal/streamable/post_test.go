package streamable_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A request with a plain result is answered with JSON.
func TestAnswersAreJSON(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		res := f.post(request("1", "echo"), in(id)...)
		ssetest.Want(f.t, "Content-Type", res.Header.Get("Content-Type"), "application/json")
		ssetest.Want(f.t, "session of a later response", res.Header.Get("Mcp-Session-Id"), "")
		res.want(http.StatusOK, result("1"))
		f.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, in(id)...).want(http.StatusAccepted, "")
		f.post(`{"jsonrpc":"2.0","id":"s","result":{}}`, in(id)...).want(http.StatusAccepted, "")
		ssetest.Want(f.t, "what the backend got", f.backend.got(), "initialize echo notifications/initialized response")
	})
}

// A client that names the stream first gets one.
func TestClientsThatPreferStreams(t *testing.T) {
	for accept, stream := range map[string]bool{
		"application/json, text/event-stream":             false,
		"text/event-stream, application/json":             true,
		"*/*":                                             false,
		"text/event-stream, */*;q=0.1":                    true,
		"application/*, text/*":                           false,
		"APPLICATION/JSON , Text/Event-Stream;q=1.0;a=b":  false,
		"text/event-stream; q = 1 , application/json;q=x": true,
		"text/event-stream;q=0.1, application/json":       false,
		"application/json;a=0;Q=0.5, text/event-stream":   true,
		"text/event-stream;q=0.1, */*":                    false,
	} {
		t.Run(accept, func(t *testing.T) {
			bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
				id := f.initialize("2025-06-18")
				res := f.post(request("1", "echo"), in(id, "Accept", accept)...)
				if !stream {
					res.want(http.StatusOK, result("1"))
					return
				}
				res.wantEvent("2-1", result("1"))
				res.wantEnd()
			})
		})
	}
}

// A ping without a session is answered in the form that its client takes.
func TestPingAloneHasItsForm(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.post(request("1", "ping")).want(http.StatusOK, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		res := f.post(request("1", "ping"), "Accept", "text/event-stream")
		res.wantEvent("", `{"jsonrpc":"2.0","id":1,"result":{}}`)
		res.wantEnd()
	})
}

// An answer that takes long comes on a stream, so that the client can come back for it.
func TestSlowAnswersMakeAStream(t *testing.T) {
	for version, primes := range map[string]bool{"2025-11-25": true, "2025-06-18": false} {
		t.Run(version, func(t *testing.T) {
			bubble(t, streamable.Options{Options: httpcheck.Options{HeartbeatInterval: 5 * second}}, connstate.Limits{}, func(f *fixture) {
				f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
					time.AfterFunc(20*second, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "") })
				}
				id := f.initialize(version)
				began := time.Now()
				res := f.post(request("1", "work"), in(id)...)
				ssetest.Want(f.t, "time to the head", time.Since(began), second/2)
				last := "2-1"
				if primes {
					res.wantEvent("2-1", "")
					last = "2-2"
				}
				res.wantEvent(last, result("1"))
				ssetest.Want(f.t, "time to the answer", time.Since(began), 20*second)
				res.wantEnd()
				ssetest.Want(f.t, "heartbeats", f.count("mcp_sse_heartbeats_total"), 3)
			})
		})
	}
}

// Bad requests get the status that the specification or practice gives them, and nothing
// else breaks.
func TestBadPOSTs(t *testing.T) {
	ok := request("7", "echo")
	for _, test := range []struct {
		name, body string
		header     []string
		status     int
		told       string
	}{
		{"neither form accepted", ok, []string{"Accept", "text/html"}, 406, "application/json, text/event-stream, or both"},
		{"both forms refused", ok, []string{"Accept", "application/json;q=0.000, text/event-stream;q=0"}, 406, "application/json, text/event-stream, or both"},
		{"no media type", ok, []string{"Content-Type", ""}, 415, "application/json"},
		{"text", ok, []string{"Content-Type", "text/plain"}, 415, "application/json"},
		{"compressed", ok, []string{"Content-Encoding", "gzip"}, 415, "Content-Encoding"},
		{"unknown version without a session", ok, in("", "MCP-Protocol-Version", "2025-01-01"), 400, "2025-06-18"},
		{"no version without a session", ok, in("", "MCP-Protocol-Version", "banana"), 400, "banana"},
		{"no JSON", `{`, nil, 400, "JSON"},
		{"no message", `{}`, nil, 400, "2.0"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"echo"}`, nil, 400, "id"},
		{"empty", ``, nil, 400, "JSON"},
		{"empty batch", `[]`, nil, 400, "1 to 100"},
		{"half a batch", `[{"jsonrpc":"2.0","method":"a"}`, nil, 400, "JSON"},
		{"batch with a fault", `[{"jsonrpc":"2.0","method":"a"},{}]`, nil, 400, "2.0"},
		{"batch of a later version", `[` + ok + `]`, []string{"MCP-Protocol-Version", "2025-06-18"}, 400, "no batches"},
		{"batch of a later version without a session", `[` + ok + `]`, in("", "MCP-Protocol-Version", "2025-11-25"), 400, "no batches"},
		{"batch with an id twice", `[` + ok + `,` + ok + `]`, in(""), 400, "same id"},
		{"batch with initialize", `[` + initialize + `]`, nil, 400, "batch"},
		{"too large", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 5<<20) + `"}`, nil, 413, "over"},
		{"unknown session", ok, in("7c9e6679-7425-40de-944b-e07fc1f90ae7"), 404, "initialize again"},
		{"long id", ok, in(strings.Repeat("x", 4000)), 404, "initialize again"},
		{"response without a session", `{"jsonrpc":"2.0","id":1,"result":{}}`, in(""), 400, "Mcp-Session-Id"},
		{"notification without a session", `{"jsonrpc":"2.0","method":"a"}`, in(""), 400, "Mcp-Session-Id"},
		{"discover without _meta", request("1", "server/discover"), in(""), 400, "-32601"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
				id := f.initialize("2025-11-25")
				opened := f.backend.opened()
				f.post(test.body, append(in(id), test.header...)...).wantStatus(test.status, test.told, `"error"`)
				ssetest.Want(f.t, "sessions", f.backend.opened(), opened)
				f.post(request("8", "echo"), in(id)...).want(http.StatusOK, result("8"))
			})
		})
	}
}

// claude.ai gives each request the id 1: each POST gets its own answer.
func TestRequestsMayHaveOneID(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-03-26")
		first := f.post(request("1", "never"), in(id)...)
		f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1"))
		second := f.post(request("1", "never"), in(id)...)
		cancel := func(requestID string) {
			f.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+requestID+`}}`, in(id)...).want(http.StatusAccepted, "")
		}
		for _, requestID := range []string{"1", `"1"`, "1.0"} {
			cancel(requestID)
			if got := f.backend.got(); strings.Contains(got, "cancelled") {
				f.t.Errorf("the cancellation of %s went on: %s", requestID, got)
			}
		}
		answer(f.backend.last(), "1", []byte(result("1")), "")
		first.wantEvent("2-1", result("1"))
		first.wantEnd()
		f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1"))
		cancel("1") // the one that is left
		if got := f.backend.got(); !strings.Contains(got, `notifications/cancelled "double-2"`) {
			f.t.Errorf("the cancellation of the only one did not go on: %s", got)
		}
		for _, doubled := range []string{`"double-1"`, `"double-2"`} { // the first has been answered
			answer(f.backend.last(), jsonrpc.ID(doubled), []byte(strings.Replace(result("1"), `"id":1`, `"id":`+doubled, 1)), "")
		}
		second.wantEvent("4-1", result("1"))
		second.wantEnd()
		f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1"))
	})
}

// Java SDKs end the response to a POST at a retry: it is for GETs.
func TestRetryIsForGETs(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		posted := f.post(request("1", "never"), in(id)...)
		answer(f.backend.last(), "1", []byte(result("1")), "")
		if body := posted.rest(); !strings.Contains(body, "event: message") || strings.Contains(body, "retry") {
			f.t.Errorf("the response to a POST is %s", body)
		}
		posted.close()
		standing := f.do(http.MethodGet, "", in(id)...)
		line, err := standing.in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "retry: ") {
			f.t.Errorf("the stream of a GET begins with %q, %v", line, err)
		}
		standing.close()
	})
}

// A client that lists one form of an answer gets that.
func TestAccept(t *testing.T) {
	for accept, want := range map[string]string{
		"":                                    "application/json",
		"application/json":                    "application/json",
		"application/*":                       "application/json",
		"*/*, text/event-stream;q=0":          "application/json",
		"application/json, text/event-stream": "application/json",
		"text/event-stream":                   "text/event-stream",
		"text/*":                              "text/event-stream",
		"text/event-stream, application/json": "text/event-stream",
	} {
		t.Run(accept, func(t *testing.T) {
			bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
				id := f.initialize("2025-11-25")
				res := f.post(request("8", "echo"), append(in(id), "Accept", accept)...)
				ssetest.Want(f.t, "Content-Type", res.Header.Get("Content-Type"), want)
				if want == "application/json" {
					res.want(http.StatusOK, result("8"))
				} else {
					res.close()
				}
			})
		})
	}
}

// A single request whose Accept names no form of an answer, as that of curl, has its answer as JSON, however long it
// takes, and what the server asks meanwhile is refused at once. One that names events, or that has a session, gets a
// stream.
func TestSingleRequestsOfCurlHaveJSON(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`
	for _, test := range []struct {
		accept  string // empty: none
		session bool
		json    bool
	}{
		{"", false, true}, {"*/*", false, true}, {"text/html, */*;q=0.5", false, true},
		{"application/json, text/event-stream", false, false}, {"text/event-stream", false, false}, {"text/*, */*", false, false},
		{"*/*", true, false},
	} {
		t.Run(fmt.Sprintf("%s %t", test.accept, test.session), func(t *testing.T) {
			bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
				refused := make(chan struct{}, 1)
				f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
					if m.Kind == jsonrpc.Response {
						ssetest.Want(f.t, "the refusal", m.Error() != nil, true)
						refused <- struct{}{}
						return
					}
					c.SendNow(m.ID, []byte(question))
					time.AfterFunc(20*second, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, []byte(`{"n":1}`)), "") })
				}
				header := []string{"Accept", test.accept}
				if test.session {
					header = append(header, in(f.initialize("2025-11-25"))...)
				}
				began := time.Now()
				res := f.post(request("1", "work"), header...)
				if !test.json {
					ssetest.Want(f.t, "Content-Type", res.Header.Get("Content-Type"), "text/event-stream")
					res.close()
					return
				}
				res.want(http.StatusOK, result("1"))
				ssetest.Want(f.t, "time to the answer", time.Since(began), 20*second)
				<-refused
			})
		})
	}
}

func TestBatches(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-03-26")
		note := `{"jsonrpc":"2.0","method":"notifications/a"}`
		f.post("["+request("1", "echo")+","+note+", "+request("2", "echo")+"]", in(id)...).want(http.StatusOK, "["+result("1")+","+result("2")+"]")
		f.post("["+note+"]", in(id)...).want(http.StatusAccepted, "")
		f.post(" ["+request("3", "echo")+"]", in(id)...).want(http.StatusOK, "["+result("3")+"]")
		f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
			time.AfterFunc(3*second, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "") })
		}
		res := f.post("["+request("4", "echo")+","+request("5", "work")+"]", in(id)...)
		res.wantEvent("4-1", result("4"))
		res.wantEvent("4-2", result("5"))
		res.wantEnd()
	})
}

// plainWriter hides http.Flusher, and has no Unwrap.
type plainWriter struct{ http.ResponseWriter }

func (plainWriter) Unwrap() {} // not the method that http.ResponseController looks for

// Behind a middleware that hides http.Flusher a POST gets its answer as JSON, however long
// it takes and whatever else comes.
func TestPOSTWithoutFlusher(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
			_ = c.Send(m.ID, []byte(note(1)))
			time.AfterFunc(time.Minute, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "") })
		}
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(plainWriter{w}, ssetest.Request(f.t.Context(), http.MethodPost, "/mcp", request("1", "work")))
		ssetest.Want(t, "status", w.Code, http.StatusOK)
		ssetest.Want(t, "answer", w.Body, result("1"))
	})
}
