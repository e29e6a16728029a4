package remote_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// An initialize gets the reason where no server is found.
func TestWhyThereIsNoServerIsSaid(t *testing.T) {
	// A server of HTTP+SSE refuses the POST for its method, whatever the credentials are: what
	// counts is why it refuses the stream.
	noAccess := []string{`"message":"the server refused access (401 Unauthorized): configure the credentials`, `"reason":"unauthorized"`}
	for name, tt := range map[string]struct {
		get, post int
		body      string // of the response to a POST
		want      []string
	}{
		"a wrong path": {200, 404, "", []string{`"message":"no MCP server found: it answered 404 Not Found to POST and 200 OK to GET: ` +
			`check the path, usually /mcp or /sse, and whether it is http or https"`}},
		"a name that the server does not know": {421, 421, "Invalid Host header",
			[]string{`"message":"the server does not take requests for the host name in its URL (421 Misdirected Request): allow that name`}},
		"a reason as JSON":         {405, 400, `{"message":"API key missing"}`, []string{`"message":"the server refused the request (400 Bad Request): API key missing"`}},
		"a reason in a list":       {405, 422, `{"detail":[{"loc":["header","x-key"],"msg":"Field required"}]}`, []string{`(422 Unprocessable Entity): header.x-key Field required"`}},
		"a reason, and no path":    {404, 404, `{"detail":"Not Found"}`, []string{`it answered 404 Not Found to POST and 404`}},
		"no access":                {401, 405, "", noAccess},
		"no access, and a refusal": {401, 405, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"use GET here"}}`, noAccess},
	} {
		t.Run(name, func(t *testing.T) {
			s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodGet {
					w.WriteHeader(tt.get)
					return
				}
				w.WriteHeader(tt.post)
				_, _ = io.WriteString(w, tt.body)
			})
			k := upstreamtest.DialTalk(t, remote.URL{Address: s.URL + "/mpc?key=hunter2"})
			k.Send(upstreamtest.Initialize)
			k.WantError("1", tt.want...)
		})
	}
}

// A server that has an error of its own for the initialize is heard.
func TestRefusalOfTheInitializeIsPassedOn(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["1"]}}}`
	for code, body := range map[int]string{400: refusal, 200: refusal, 401: "", 403: ""} {
		s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m == nil || m.Method == "server/discover" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			io.WriteString(w, body)
		})
		k := upstreamtest.DialTalk(t, remote.URL{Address: s.URL})
		k.Send(upstreamtest.Initialize)
		got, _ := k.Recv()
		if body != "" && got != body || body == "" && !strings.Contains(got, "configure the credentials") {
			t.Errorf("%d: got %s", code, got)
		}
	}
}

// Where the question fails, and initialize too, what is told is why initialize fails, and the log has it once.
func TestWhyInitializeFailsIsToldAndNotWhyTheQuestionDid(t *testing.T) {
	for _, asked := range []int{400, 403, 500, 502} {
		for _, code := range []int{400, 403, 422, 500, 502, 503} {
			for _, get := range []int{405, 500} {
				t.Run(fmt.Sprintf("%d, %d, GET %d", asked, code, get), func(t *testing.T) {
					s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
						status, why := get, "words of GET"
						switch {
						case m != nil && m.Method == "server/discover":
							status, why = asked, "words of the question"
						case m != nil:
							status, why = code, "API key missing"
						}
						w.Header().Set("Content-Type", "application/json")
						w.WriteHeader(status)
						fmt.Fprintf(w, `{"message":%q}`, why)
					})
					var log ssetest.Output
					conn, err := remote.URL{Address: s.URL + "/mcp"}.Observed(slog.New(slog.NewTextHandler(&log, nil)), nil).Dial(t.Context())
					ssetest.Must(t, err)
					upstreamtest.Send(t, conn, upstreamtest.Initialize)
					got, err := conn.Recv()
					ssetest.Must(t, err)
					ssetest.WantText(t, "the answer", string(got), "API key missing")
					if strings.Contains(string(got), "words of") {
						t.Errorf("got %s", got)
					}
					ssetest.Must(t, conn.Close())
					lines := 0
					for line := range strings.Lines(log.String()) {
						if strings.Contains(line, "server refused a request") {
							lines++
							ssetest.WantText(t, "the line", line, "API key missing")
						}
					}
					ssetest.Want(t, "lines of the log", lines, 1)
				})
			}
		}
	}
}

func TestWhatIsRememberedMayTurnOutWrong(t *testing.T) {
	kinds := map[string]upstreamtest.Handler{"stateless": modernServer, "streamable": legacyServer, "SSE": sseOnly(405)}
	for was, before := range kinds {
		for is, after := range kinds {
			t.Run(was+" to "+is, func(t *testing.T) {
				var renewed atomic.Bool
				s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					if renewed.Load() {
						after(w, r, m)
					} else {
						before(w, r, m)
					}
				})
				up := remote.URL{Address: s.URL}.Observed(nil, nil)
				greet(t, up)
				renewed.Store(true)
				greet(t, up)
				greet(t, up)
			})
		}
	}
}

// An old verdict would work silently and without end with a server of both kinds.
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
			ssetest.Want(t, fmt.Sprintf("discovers of session %d", i), discovers, want)
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
				time.Sleep(time.Millisecond) // what it answers now is too late
			}
			legacyServer(w, r, m)
		}))
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("it took %s", took)
		}
		time.Sleep(time.Second) // the handler ends
	})
}

// Silence shows nothing: a stateless server may have been slow, and the next session asks again.
func TestServerThatWasSilentIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var boots atomic.Bool
		boots.Store(true)
		up := inProcess(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if boots.Load() && m != nil && m.Method == "server/discover" {
				<-r.Context().Done()
				time.Sleep(time.Millisecond) // what it answers now is too late
			}
			if boots.Load() {
				legacyServer(w, r, m)
				return
			}
			modernServer(w, r, m)
		})
		greet(t, up)
		time.Sleep(time.Second) // the handler ends
		boots.Store(false)
		conn, err := up.Dial(t.Context())
		ssetest.Must(t, err)
		ssetest.Want(t, "the server is known to be stateless", conn.(jsonrpc.Stateless).Stateless(), true)
		ssetest.Must(t, conn.Close())
	})
}

func TestMessagesBeforeTheDecisionWaitForIt(t *testing.T) {
	for name, do := range map[string]upstreamtest.Handler{"streamable": legacyServer, "SSE": sseOnly(404)} {
		t.Run(name, func(t *testing.T) {
			decide := make(chan struct{})
			s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m != nil && m.Method == "initialize" {
					<-decide
				}
				do(w, r, m)
			})
			k := upstreamtest.DialTalk(t, remote.URL{Address: s.URL})
			k.Send(upstreamtest.Initialize)
			k.Send(upstreamtest.Initialized)
			k.Send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			close(decide)
			one, _ := k.Recv()
			two, _ := k.Recv()
			if strings.Contains(one, "serverInfo") == strings.Contains(two, "serverInfo") {
				t.Errorf("got %s and %s", one, two)
			}
			ssetest.Want(t, "POSTs of initialized", len(s.Wait(t, 1, upstreamtest.Posted("notifications/initialized"))), 1)
		})
	}
}

func TestCloseBeforeTheDecision(t *testing.T) {
	for name, first := range map[string]string{"nothing sent": "", "initialize under way": upstreamtest.Initialize} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			s := upstreamtest.ServeHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m != nil && m.Method == "initialize" {
					<-r.Context().Done()
					return
				}
				legacyServer(w, r, m)
			})
			k := upstreamtest.DialTalk(t, remote.HTTPHandler(s))
			if first != "" {
				k.Send(first)
				s.Wait(t, 1, upstreamtest.Posted("initialize"))
			}
			ssetest.Want(t, "Close", k.Conn.Close(), nil)
			if a := k.Next(); a.Err == nil {
				t.Errorf("Recv gives %s", a.Msg)
			}
			if err := k.Conn.Send([]byte(upstreamtest.Initialize)); err == nil {
				t.Error("Send works")
			}
		})
	}
}

// A session that is closed while the server works on its initialize is ended there: the answer, for which Close waits,
// has its id. It waits for 2 s at most, whatever else is to be done.
func TestCloseDuringInitializeEndsTheSession(t *testing.T) {
	for _, transport := range []string{"", remote.TransportStreamable} {
		for boot, want := range map[time.Duration]int{time.Second: 1, time.Minute: 0} {
			upstreamtest.TestInBubble(t, fmt.Sprintf("%q %v", transport, boot), func(t *testing.T) {
				s := upstreamtest.ServeHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					if m != nil && m.Method == "initialize" {
						select {
						case <-time.After(boot):
						case <-r.Context().Done():
							return
						}
					}
					upstreamtest.Session(nil)(w, r, m)
				})
				up := upstreamtest.Streamable(s)
				up.Transport = transport
				k := upstreamtest.DialTalk(t, up)
				k.Send(upstreamtest.Initialize)
				synctest.Wait()
				began := time.Now()
				ssetest.Want(t, "Close", k.Conn.Close(), nil)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("Close took %v", took)
				}
				ended := s.Find(upstreamtest.Method("DELETE"))
				if len(ended) != want || want == 1 && ended[0].Header.Get("Mcp-Session-Id") != "s-1" {
					t.Errorf("got the DELETEs %+v, want %d", ended, want)
				}
			})
		}
	}
}

// If a server opens its stream and sends nothing, the excuse says so.
func TestExcuseOfAStreamWithoutItsEndpoint(t *testing.T) {
	upstreamtest.TestInBubble(t, "", func(t *testing.T) {
		var logs ssetest.Output
		s := upstreamtest.ServeHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			upstreamtest.Stream(w)(": hello")
			<-r.Context().Done()
		})
		up := upstreamtest.Streamable(s)
		up.Transport = ""
		up = up.Observed(ssetest.Logger(&logs), nil).(remote.URL)
		k := upstreamtest.DialTalk(t, up)
		ssetest.Want(t, "the excuse before", up.Excuse(), "")
		k.Send(upstreamtest.Initialize)
		synctest.Wait()
		ssetest.Want(t, "the excuse at once", up.Excuse(), "")
		time.Sleep(time.Minute / 4)
		ssetest.WantText(t, "the excuse", up.Excuse(), "no endpoint event has come by GET")
		ssetest.Want(t, "Close", k.Conn.Close(), nil)
		ssetest.Want(t, "the excuse after", up.Excuse(), "")
		ssetest.WantText(t, "the log", logs.String(), "no endpoint event came before the session was closed")
	})
}
