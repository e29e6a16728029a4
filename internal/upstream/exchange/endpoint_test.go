package exchange

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testEndpoint(url string) *Endpoint {
	return &Endpoint{URL: url, Client: http.DefaultClient, Limit: 64, Log: slog.New(slog.DiscardHandler)}
}

func TestDoSendsHeadersInTheirOrderOfRank(t *testing.T) {
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer srv.Close()
	e := testEndpoint(srv.URL)
	e.Header = http.Header{"Accept": {"x"}, "Mcp-Session-Id": {"x"}, "X-Key": {"k"}}
	for method, accept := range map[string]string{"POST": "application/json, text/event-stream", "GET": "text/event-stream", "DELETE": "x"} {
		resp, err := e.Do(t.Context(), method, nil, http.Header{"Mcp-Session-Id": {"s"}})
		ssetest.Must(t, err)
		resp.Body.Close()
		if a, s, k := got.Get("Accept"), got.Get("Mcp-Session-Id"), got.Get("X-Key"); a != accept || s != "s" || k != "k" {
			t.Errorf("%s: Accept %q, Mcp-Session-Id %q, X-Key %q", method, a, s, k)
		}
	}
}

// The target of a redirect may hold the key that was sent. Clients must not learn the
// address either.
func TestErrorsOfRequestsHoldNoSecret(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	redirects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://[::1/mcp?key=hunter2")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer redirects.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	at := gone.Listener.Addr().String()
	secret := strings.Replace(gone.URL, "http://", "http://user:hunter2@", 1) + "/mcp?key=hunter2#hunter2"
	for name, tt := range map[string]struct {
		ctx       context.Context
		url       string
		unreached bool
		plain     string
		text      string // of the error; empty: not compared
	}{
		"refused":        {t.Context(), secret, true, "nothing listens there (connection refused)", at + ": nothing listens there (connection refused)"},
		"another name":   {t.Context(), "http://user:hunter2@mcp.example.com/mcp?key=hunter2", true, "nothing listens there (connection refused)", "mcp.example.com:80: nothing listens there (connection refused by " + at + ")"},
		"ended":          {ended, secret, false, "canceled", ""},
		"no URL":         {t.Context(), "http://hunter2:hunter2@[/hunter2", false, "missing ']' in host", ""},
		"broken reply":   {t.Context(), redirects.URL, false, "it redirects to an invalid URL", ""},
		"no certificate": {t.Context(), strings.Replace(redirects.URL, "http:", "https:", 1), true, "the server answers in plain HTTP, not HTTPS", redirects.Listener.Addr().String() + ": the server answers in plain HTTP, not HTTPS"},
	} {
		endpoint := testEndpoint(tt.url)
		if name == "another name" {
			endpoint.Client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, at) // as DNS would have it
			}}}
		}
		_, err := endpoint.Do(tt.ctx, "POST", []byte("{}"), nil)
		if err != nil && tt.text != "" {
			ssetest.Want(t, name, err.Error(), tt.text)
		}
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "user") || Unreached(err) != tt.unreached {
			t.Errorf("%s: got %v, unreached %t", name, err, Unreached(err))
		} else if plain := PlainCause(err); !strings.Contains(plain, tt.plain) || strings.Contains(plain, "127.0.0.1") {
			t.Errorf("%s: the cause is %q", name, plain)
		}
	}
	_, err := testEndpoint(gone.URL).Do(t.Context(), "POST", nil, nil)
	ssetest.WantError(t, "the cause", err, syscall.ECONNREFUSED)
	ssetest.Want(t, "a URL without a port", addressOf("https://user:hunter2@MCP.example.com/a"), "MCP.example.com:443")
}

// The success of a message says that the server asks for no login now. A refusal, a failure, or the end of a session says
// nothing.
func TestSuccessIsTold(t *testing.T) {
	for code, want := range map[int]int{200: 1, 202: 1, 401: 0, 403: 0, 404: 0, 502: 0} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		told := 0
		e := testEndpoint(srv.URL)
		e.Authorize = func(context.Context, string) (string, error) { return "", nil }
		e.Accepted = func() { told++ }
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodGet} {
			resp, err := e.Do(t.Context(), method, nil, nil)
			ssetest.Must(t, err)
			resp.Body.Close()
		}
		srv.Close()
		ssetest.Want(t, http.StatusText(code), told, want)
	}
}

func TestDeliverDropsWhatIsNoMessage(t *testing.T) {
	q := buffer.NewQueue(1 << 10)
	x := testEndpoint("")
	push := func(m *jsonrpc.Message) error { return q.Push(m.Raw(), "") }
	for _, data := range []string{
		`{"jsonrpc":"2.0","method":"a"}`, "hello", "\x00", `[{"jsonrpc":"2.0",` + "\n" + `"method":"b"}, 1, {"jsonrpc":"2.0","id":7}]`, "[]", "[[]]",
	} {
		stream := strings.NewReader("data: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n")
		ssetest.Want(t, data, x.Deliver(push, NewEventReader(stream, 1<<10, Cursor{})), io.EOF)
	}
	for _, want := range []string{`{"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0","method":"b"}`, `{"jsonrpc":"2.0","id":7}`} {
		if got, _, err := q.RecvFor(); string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if got, ok := q.Poll(); ok {
		t.Errorf("got %q", got)
	}
	q.End(io.EOF)
	one := NewEventReader(strings.NewReader("data: "+`{"jsonrpc":"2.0","method":"a"}`+"\n\n"), 1<<10, Cursor{})
	ssetest.Want(t, "the end of a stream whose queue is closed", x.Deliver(push, one), nil)
	ssetest.Want(t, "messages in a batch over the limit", len(splitBatch([]byte("["+strings.Repeat("[],", maxBatch)+"[]]"))), 1)
}

// Without a token nothing is sent. The error says whether somebody has to log in, or a client has to wait.
func TestErrorsWithoutAToken(t *testing.T) {
	for isStalled, want := range map[bool]ErrorData{
		false: {Reason: ReasonUnauthorized, Status: 401, NeedsLogin: true},
		true:  {Reason: ReasonUnauthorized, Status: 401, Retryable: true},
	} {
		e := testEndpoint("http://127.0.0.1:1")
		e.Authorize = func(context.Context, string) (string, error) { return "", errors.New("the issuer fails") }
		e.Advise = func(context.Context, *http.Response, bool) (again bool, full, public, link string) {
			return false, "for an operator", "for all", ""
		}
		e.IsStalled = func() bool { return isStalled }
		resp, err := e.Do(t.Context(), http.MethodPost, nil, nil)
		ssetest.Must(t, err)
		failure := e.StatusError(resp, nil)
		ssetest.Want(t, "message", failure.Message, "for all")
		data := DataOf(failure)
		data.Details = nil
		ssetest.Want(t, "data", data, want)
	}
}
