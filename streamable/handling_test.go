package streamable_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// handling is a request that a server in this process handles.
type handling struct {
	c      *connstate.Connection
	m      *jsonrpc.Message
	handle func(h *handling)
}

func (h *handling) Run() {
	defer func() {
		h.m.Waiter.Returned()
		h.answer()
	}()
	h.handle(h)
}

func (h *handling) answer() { answer(h.c, h.m.ID, jsonrpc.NewResult(h.m.ID, h.m.Params()), "") }

// handles gives each request to the goroutine that waits for its answer.
func (f *fixture) handles(handle func(h *handling)) {
	f.backend.receive = func(c *connstate.Connection, m *jsonrpc.Message) {
		if m.Waiter == nil || !m.Waiter.Take(&handling{c, m, handle}) {
			f.t.Errorf("request %s has no goroutine that waits", m.ID)
		}
		if m.Waiter.Take(&handling{}) {
			f.t.Errorf("request %s: two were taken", m.ID)
		}
	}
}

// wrap puts a middleware with such writers before the Handler; nil protocols are those of
// net/http.
func (f *fixture) wrap(protocols *http.Protocols, wrap func(http.ResponseWriter) http.ResponseWriter) {
	f.srv.Stop()
	f.srv = pipetest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.handler.ServeHTTP(wrap(w), r)
	}), protocols, nil)
}

// postInVain posts a request that gets no response.
func (f *fixture) postInVain(ctx context.Context, session string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(request("1", "work")))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header = http.Header{"Accept": {acceptBoth}, "Content-Type": {"application/json"}, "Mcp-Session-Id": {session}}
	if res, err := f.srv.Client.Do(req); err == nil {
		res.Body.Close()
		f.t.Errorf("got %s, want none", res.Status)
	}
}

// note is a notification of a server about a request.
func (h *handling) note() {
	_ = h.c.Send(h.m.ID, []byte(`{"jsonrpc":"2.0","method":"note"}`)) // the client checks that it comes
}

// The goroutine of a POST runs the handler. What happens before the handler returns is
// written all the same.
func TestHandlersRunInTheirPOST(t *testing.T) {
	opts := streamable.Options{StreamAfter: 2 * second, Options: front.Options{HeartbeatInterval: 5 * second}}
	over := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"over"}}`
	for name, c := range map[string]struct {
		handle func(h *handling)
		client func(f *fixture, began time.Time, post func() *reply)
	}{
		"returns at once": {
			handle: func(*handling) {},
			client: func(f *fixture, _ time.Time, post func() *reply) { post().want(http.StatusOK, result("1")) },
		},
		"ends its goroutine": {
			handle: func(*handling) { runtime.Goexit() },
			client: func(f *fixture, _ time.Time, post func() *reply) {
				res := post()
				res.want(http.StatusOK, result("1"))
				if !res.Close {
					f.t.Error("the client may use the TCP connection again, which net/http closes")
				}
			},
		},
		"ends its goroutine late": {
			handle: func(*handling) {
				time.Sleep(5 * second)
				runtime.Goexit()
			},
			client: func(f *fixture, began time.Time, post func() *reply) {
				res := post()
				res.wantEvent("2-1", "")
				res.wantEvent("2-2", result("1"))
				res.wantEnd()
				f.wantTime(began, 5*second)
			},
		},
		"is slow": {
			handle: func(*handling) { time.Sleep(13 * second) },
			client: func(f *fixture, began time.Time, post func() *reply) {
				res := post()
				res.wantEvent("2-1", "")
				f.wantTime(began, 2*second)
				res.wantEvent("2-2", result("1"))
				f.wantTime(began, 13*second)
				res.wantEnd()
				if n := f.count("mcp_sse_heartbeats_total"); n != 2 {
					f.t.Errorf("%g heartbeats", n)
				}
			},
		},
		"sends notifications": {
			handle: func(h *handling) {
				h.note()
				time.Sleep(second)
				h.note()
				time.Sleep(second)
			},
			client: func(f *fixture, began time.Time, post func() *reply) {
				res := post()
				res.wantEvent("2-1", "")
				res.wantEvent("2-2", `{"jsonrpc":"2.0","method":"note"}`)
				f.wantTime(began, 0)
				res.wantEvent("2-3", `{"jsonrpc":"2.0","method":"note"}`)
				f.wantTime(began, second)
				res.wantEvent("2-4", result("1"))
				f.wantTime(began, 2*second)
				res.wantEnd()
			},
		},
		"is answered by another, and does not return": {
			handle: func(h *handling) {
				time.AfterFunc(second, func() {
					answer(h.c, h.m.ID, jsonrpc.NewError(h.m.ID, jsonrpc.Errorf(-32603, "over")), "")
				})
				time.Sleep(time.Minute)
			},
			client: func(f *fixture, began time.Time, post func() *reply) {
				res := post()
				res.want(http.StatusOK, over)
				f.wantTime(began, second)
				if !res.Close {
					f.t.Error("the client may use the TCP connection again, which nobody reads")
				}
				f.backend.last().Close("client")
				synctest.Wait()
				if n := f.registry.Len(); n != 0 {
					f.t.Errorf("%d sessions are left", n)
				}
			},
		},
		"is answered by another while it is a stream, and does not return": {
			handle: func(h *handling) {
				time.AfterFunc(5*second, func() {
					answer(h.c, h.m.ID, jsonrpc.NewError(h.m.ID, jsonrpc.Errorf(-32603, "over")), "")
				})
				time.Sleep(time.Minute)
			},
			client: func(f *fixture, began time.Time, post func() *reply) {
				res := post()
				res.wantEvent("2-1", "")
				res.wantEvent("2-2", over)
				res.wantEnd()
				f.wantTime(began, 5*second)
			},
		},
		"is answered by another, and ends its goroutine": {
			handle: func(h *handling) {
				time.AfterFunc(second, func() {
					answer(h.c, h.m.ID, jsonrpc.NewError(h.m.ID, jsonrpc.Errorf(-32603, "over")), "")
				})
				time.Sleep(time.Minute)
				runtime.Goexit()
			},
			client: func(f *fixture, began time.Time, post func() *reply) {
				post().want(http.StatusOK, over)
				f.wantTime(began, second)
			},
		},
		"its session is closed": {
			handle: func(*handling) { time.Sleep(time.Minute) },
			client: func(f *fixture, began time.Time, post func() *reply) {
				time.AfterFunc(second, func() { f.backend.last().Close("client") })
				if got := post().rest(); !strings.Contains(got, "the session was closed") {
					f.t.Errorf("got %s", got)
				}
				f.wantTime(began, second)
			},
		},
		"its client is cut, and comes back": {
			handle: func(*handling) { time.Sleep(10 * second) },
			client: func(f *fixture, began time.Time, post func() *reply) {
				res := post()
				res.wantEvent("2-1", "")
				res.close()
				res = f.do(http.MethodGet, "", in(res.Header.Get("Test-Session"), "Last-Event-ID", "2-1", "Accept", "text/event-stream")...)
				res.wantEvent("2-2", result("1"))
				f.wantTime(began, 10*second)
				res.wantEnd()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, opts, connstate.Limits{}, func(f *fixture) {
				f.handles(c.handle)
				id := f.initialize("2025-11-25")
				c.client(f, time.Now(), func() *reply {
					res := f.post(request("1", "work"), in(id)...)
					res.Header.Set("Test-Session", id)
					return res
				})
				time.Sleep(2 * time.Minute) // the handler has returned
				synctest.Wait()
			})
		})
	}
}

// A message of the server that comes after the client has gone goes to the session's own
// stream, though the response could still have become one.
func TestHandlerOfAClientThatIsGone(t *testing.T) {
	bubble(t, streamable.Options{StreamAfter: 2 * second}, connstate.Limits{}, func(f *fixture) {
		f.handles(func(h *handling) {
			time.Sleep(second)
			h.note()
			time.Sleep(second)
		})
		id := f.initialize("2025-11-25")
		get := f.do(http.MethodGet, "", in(id, "Accept", "text/event-stream")...)
		ctx, leave := context.WithCancel(f.t.Context())
		time.AfterFunc(second/10, leave)
		f.postInVain(ctx, id)
		if _, data := get.next(); data != `{"jsonrpc":"2.0","method":"note"}` {
			f.t.Errorf("got %s", data)
		}
		get.close()
	})
}

// The bytes of a body are given back with the answer, not when the handler returns.
func TestBodyOfAHandlerThatDoesNotReturn(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.handles(func(h *handling) {
			time.AfterFunc(second/10, func() { h.answer() })
			time.Sleep(time.Minute)
		})
		id := f.initialize("2025-11-25")
		body := strings.Replace(request("1", "work"), `"n":1`, `"n":"`+strings.Repeat("x", 1<<20)+`"`, 1)
		f.post(body, in(id)...).rest()
		synctest.Wait()
		if n := f.count("mcp_sse_held_bytes"); n != 0 {
			f.t.Errorf("%g bytes are held", n)
		}
		time.Sleep(time.Minute)
	})
}

// A middleware whose writer panics ends the response, and nothing else.
func TestWriterThatPanicsBesideTheHandler(t *testing.T) {
	bubble(t, streamable.Options{StreamAfter: second}, connstate.Limits{}, func(f *fixture) {
		f.wrap(nil, func(w http.ResponseWriter) http.ResponseWriter { return aborting{w} })
		f.handles(func(*handling) { time.Sleep(3 * second) })
		id := f.initialize("2025-11-25")
		f.postInVain(f.t.Context(), id)
		f.backend.last().Close("client")
		synctest.Wait()
		if n := f.registry.Len(); n != 0 {
			f.t.Errorf("%d sessions are left", n)
		}
	})
}

// aborting panics when a stream begins.
type aborting struct{ http.ResponseWriter }

func (a aborting) WriteHeader(status int) {
	if a.Header().Get("Content-Type") == "text/event-stream" {
		panic(http.ErrAbortHandler)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a aborting) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// wantTime checks how long something took.
func (f *fixture) wantTime(began time.Time, want time.Duration) {
	f.t.Helper()
	if took := time.Since(began); took != want {
		f.t.Errorf("it took %s, want %s", took, want)
	}
}

// Where a response ends with its handler at the earliest, the handler runs elsewhere.
func TestHandlersThatRunElsewhere(t *testing.T) {
	var both http.Protocols
	both.SetUnencryptedHTTP2(true)
	for name, c := range map[string]struct {
		protocols *http.Protocols
		wrap      func(http.ResponseWriter) http.ResponseWriter
	}{
		"HTTP/2":     {&both, func(w http.ResponseWriter) http.ResponseWriter { return w }},
		"no Flusher": {nil, func(w http.ResponseWriter) http.ResponseWriter { return plainWriter{w} }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
				f.wrap(c.protocols, c.wrap)
				f.backend.receive = func(c *connstate.Connection, m *jsonrpc.Message) {
					if m.Waiter != nil && m.Waiter.Take(&handling{c, m, func(*handling) {}}) {
						f.t.Error("taken")
					}
					answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "")
				}
				f.post(request("1", "work"), in(f.initialize("2025-11-25"))...).want(http.StatusOK, result("1"))
			})
		})
	}
}

// A request that is not passed on within its POST has no goroutine to take it: it waits
// for its server, or has been answered.
func TestHandlersThatComeLate(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.backend.receive = func(c *connstate.Connection, m *jsonrpc.Message) {
			time.AfterFunc(second/10, func() {
				if m.Waiter.Take(&handling{c, m, func(*handling) {}}) {
					f.t.Error("taken")
				}
				answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "")
			})
		}
		f.post(request("1", "work"), in(f.initialize("2025-11-25"))...).want(http.StatusOK, result("1"))
	})
}
