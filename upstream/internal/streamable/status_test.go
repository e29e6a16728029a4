package streamable_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

// answered has a session whose server answers tools/call with a status, a text and
// headers, and ping in good order.
func answered(t *testing.T, code int, body string, header ...string) *upstreamtest.Talk {
	t.Helper()
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case m == nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "ping":
			upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
		default:
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}))
	return upstreamtest.Open(t, upstreamtest.Streamable(s))
}

// The body of an unsuccessful response is plain text or a JSON-RPC error. It fails its
// request.
func TestRefusedRequestsGetErrors(t *testing.T) {
	const rpc = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: no","data":9007199254740993},"id":null}`
	for _, tt := range []struct {
		name      string
		code      int
		body      string
		wantCode  int
		want      string // part of the message
		reason    string
		retryable bool
	}{
		{"unknown method of go-sdk", 400, "JSON RPC not handled: \"x/y\" unsupported\n", -32601, "does not know the method", "", false},
		{"invalid request of go-sdk", 400, "invalid request: missing required \"params\"\n", -32600, "missing required", "", false},
		{"plain text", 400, "no such thing\nmore", -32603, "(400 Bad Request): no such thing", "request_refused", false},
		{"JSON-RPC of its own", 400, strings.Replace(rpc, "null", "2", 1), -32000, "Bad Request: no", "", false},
		{"JSON-RPC of its own with 500", 500, strings.Replace(rpc, "null", "2", 1), -32000, "Bad Request: no", "", false},
		{"unknown method with 404", 404, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"gone"}}`, -32601, "gone", "", false},
		{"argument of a tool", 400, `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such session"}}`, -32602, "no such session", "", false},
		{"unauthorized", 401, "secret", -32603, "refused access (401 Unauthorized): configure the credentials", "unauthorized", false},
		{"forbidden", 403, rpc, -32603, "refused access (403 Forbidden): configure the credentials", "unauthorized", false},
		{"rate", 429, "", -32603, "takes no more requests now (429 Too Many Requests)", "rate_limited", true},
		{"elsewhere", 302, "", -32603, "redirects elsewhere (302 Found)", "request_refused", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := answered(t, tt.code, tt.body)
			k.Send(upstreamtest.Call2)
			f := k.Fails()
			if e := f.Error; string(f.ID) != "2" || e.Code != tt.wantCode || !strings.Contains(e.Message, tt.want) ||
				e.Data.Reason != tt.reason && tt.reason != "" || e.Data.Retryable != tt.retryable {
				t.Errorf("got %+v", f)
			}
			if strings.Contains(f.Error.Message, "secret") {
				t.Errorf("tells %q", f.Error.Message)
			}
			k.Send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
			if got, _ := k.Recv(); !strings.Contains(got, `"id":3,"result"`) {
				t.Errorf("the session is not what it was: %s", got)
			}
		})
	}
}

func TestErrorBodiesPassUnchanged(t *testing.T) {
	k := answered(t, 400, `{"jsonrpc":"2.0", "error":{"code":-32000,"message":"m","data":9007199254740993,"x":1.0}}`)
	k.Send(upstreamtest.Call2)
	if got, _ := k.Recv(); got != `{"id":2,"jsonrpc":"2.0", "error":{"code":-32000,"message":"m","data":9007199254740993,"x":1.0}}` {
		t.Errorf("got %s", got)
	}
}

func TestRetryAfterIsPassedOn(t *testing.T) {
	for _, tt := range []struct {
		code     int
		value    string
		min, max int64
	}{
		{429, "7", 7000, 7000},
		{503, "2", 2000, 2000},
		{429, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 3_500_000, 3_600_000},
		{503, "0", 1, 1},
		{429, "soon", 0, 0},
		{429, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 1, 1},
	} {
		k := answered(t, tt.code, "", "Retry-After", tt.value)
		k.Send(upstreamtest.Call2)
		f := k.Fails()
		if d := f.Error.Data; !d.Retryable || d.RetryAfterMs < tt.min || d.RetryAfterMs > tt.max || d.Status != tt.code {
			t.Errorf("%d %q: got %+v", tt.code, tt.value, d)
		}
	}
}

func TestSomeStatusesEndTheSession(t *testing.T) {
	for code, want := range map[int]string{
		404: "the server has forgotten the session",
		500: "the server answered 500 Internal Server Error",
		502: "the server answered 502 Bad Gateway",
		503: "the server answered 503 Service Unavailable",
	} {
		k := answered(t, code, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
		k.Send(upstreamtest.Call2)
		if err := k.Ended(); err.Error() != want {
			t.Errorf("%d: ended with %v", code, err)
		}
	}
}

// After a restart some servers answer 400 instead of 404: server-everything and
// what was made after the same example, and older ones of the Python SDK.
func TestBadRequestAboutTheSessionEndsIt(t *testing.T) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":2}`,
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`,
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`,
		"Bad Request: No valid session ID provided",
		"Invalid or missing session ID\n",
	} {
		k := answered(t, 400, body)
		k.Send(upstreamtest.Call2)
		if err := k.Ended(); !strings.Contains(err.Error(), "forgotten the session") {
			t.Errorf("%s: ended with %v", body, err)
		}
	}
}

func TestNotFoundWithoutASessionIsAnError(t *testing.T) {
	s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case m == nil || m.Kind != jsonrpc.Request:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			upstreamtest.AnswerJSON(w, upstreamtest.InitResult)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(upstreamtest.Call2)
	if f := k.Fails(); f.Error.Data.Status != 404 || f.Error.Data.Retryable {
		t.Errorf("got %+v", f)
	}
}

func TestUnreachableServerEndsTheSession(t *testing.T) {
	s := upstreamtest.Serve(t, upstreamtest.Session(nil))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	s.Wait(t, 1, upstreamtest.Method("GET"))
	s.Server.CloseClientConnections()
	s.Server.Close()
	k.Send(upstreamtest.Call2)
	a := k.Next()
	if a.Err == nil { // it went out on a connection that was about to end
		k.Send(upstreamtest.Call2)
		a = k.Next()
	}
	err := a.Err
	if err == nil || !strings.Contains(err.Error(), "the server cannot be reached: ") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("ended with %v", err)
	}
	if strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a client would be told the address: %v", err)
	}
}

// A response that breaks off fails its request alone.
func TestBrokenResponseHarmsItsRequestAlone(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"before the head": func(http.ResponseWriter) {},
		"in a stream":     func(w http.ResponseWriter) { upstreamtest.Stream(w)(": hello") },
		"in JSON":         func(w http.ResponseWriter) { upstreamtest.AnswerJSON(w, `{"jsonrpc":`); w.(http.Flusher).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case m == nil:
					w.WriteHeader(http.StatusMethodNotAllowed)
				case m.Method == "ping":
					upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
				default:
					begin(w)
					panic(http.ErrAbortHandler)
				}
			}))
			k := upstreamtest.Open(t, upstreamtest.Streamable(s))
			k.Send(upstreamtest.Call2)
			f := k.Fails()
			if string(f.ID) != "2" || f.Error.Code != -32603 || f.Error.Data.Reason != "response_lost" || f.Error.Data.Retryable {
				t.Errorf("got %+v", f)
			}
			if strings.Contains(f.Error.Message, "127.0.0.1") {
				t.Errorf("a client would be told the address: %s", f.Error.Message)
			}
			k.Send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
			if got, _ := k.Recv(); !strings.Contains(got, `"id":3,"result"`) {
				t.Errorf("afterwards got %s", got)
			}
		})
	}
}

// The target of a redirect may hold the key that was sent.
func TestErrorsDoNotTellWhereABrokenRedirectLeads(t *testing.T) {
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m != nil && m.Method == "tools/call" {
			w.Header().Set("Location", "http://[::1/mcp?key=hunter2")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(upstreamtest.Call2)
	if f := k.Fails(); strings.Contains(f.Error.Message, "hunter2") || !strings.Contains(f.Error.Message, "redirect") {
		t.Errorf("tells %q", f.Error.Message)
	}
}
