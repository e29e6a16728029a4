package exchange

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

func testEndpoint(url string) *Endpoint {
	return &Endpoint{URL: url, Client: http.DefaultClient, Limit: 64, Log: slog.New(slog.DiscardHandler)}
}

func TestDoSendsHeadersInTheirOrderOfRank(t *testing.T) {
	got := make(chan *http.Request, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		got <- r
	}))
	defer srv.Close()
	e := testEndpoint(srv.URL)
	e.Client = srv.Client()
	e.Header = http.Header{"Accept": {"x"}, "Mcp-Session-Id": {"x"}, "X-Key": {"k"}}
	extra := http.Header{"Mcp-Session-Id": {"s"}}
	for method, accept := range map[string]string{"POST": "application/json, text/event-stream", "GET": "text/event-stream", "DELETE": "x"} {
		var body []byte
		if method == "POST" {
			body = []byte("{}")
		}
		resp, err := e.Do(t.Context(), method, body, extra)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		r := <-got
		if a, s, k := r.Header.Get("Accept"), r.Header.Get("Mcp-Session-Id"), r.Header.Get("X-Key"); a != accept || s != "s" || k != "k" {
			t.Errorf("%s: Accept %q, Mcp-Session-Id %q, X-Key %q", method, a, s, k)
		}
		if b, _ := io.ReadAll(r.Body); string(b) != string(body) {
			t.Errorf("%s: body %q", method, b)
		}
	}
}

func TestErrorsOfRequestsHoldNoSecret(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	secret := strings.Replace(gone.URL, "http://", "http://user:hunter2@", 1) + "/mcp?key=hunter2#hunter2"
	for name, tt := range map[string]struct {
		ctx context.Context
		url string
	}{
		"refused": {t.Context(), secret}, "ended": {ended, secret}, "no URL": {t.Context(), "http://hunter2:hunter2@[/hunter2"},
	} {
		_, err := testEndpoint(tt.url).Do(tt.ctx, "POST", []byte("{}"), nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "user") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDeliverDropsWhatIsNoMessage(t *testing.T) {
	q := buffer.NewQueue(1 << 10)
	x := testEndpoint("")
	for _, data := range []string{
		`{"jsonrpc":"2.0","method":"a"}`, "hello", "\x00", `[{"jsonrpc":"2.0",` + "\n" + `"method":"b"}, 1, {"jsonrpc":"2.0","id":7}]`, "[]", "[[]]",
	} {
		if err := x.Deliver(q, []byte(data)); err != nil {
			t.Errorf("%q: %v", data, err)
		}
	}
	q.End(io.EOF)
	for _, want := range []string{`{"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0","method":"b"}`, `{"jsonrpc":"2.0","id":7}`} {
		if got, _, err := q.Pop(); string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if got, _, err := q.Pop(); err != io.EOF {
		t.Errorf("got %q, %v", got, err)
	}
	if err := x.Deliver(q, []byte(`{"jsonrpc":"2.0","method":"a"}`)); err != io.EOF {
		t.Errorf("into a closed queue: %v", err)
	}
}
