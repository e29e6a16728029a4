package exchange

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func testExchange(url string) *Endpoint {
	return &Endpoint{URL: url, Client: http.DefaultClient, Limit: 64}
}

func response(contentType, body string) *http.Response {
	return &http.Response{Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

func TestReadGivesEachMessageOfAResponse(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, tt := range []struct {
		name, kind, body string
		want             []string // data, and what else is set
	}{
		{"JSON", "application/json", `{"a":1}`, []string{`{"a":1}`}},
		{"JSON with parameter", "Application/JSON; charset=utf-8", `{"a":1}`, []string{`{"a":1}`}},
		{"JSON on lines", "application/json", "{\n\"a\": 9007199254740993\r\n}", []string{`{"a":9007199254740993}`}},
		{"empty", "application/json", "", nil},
		{"JSON over the limit", "application/json", long, []string{"too long"}},
		{"events", "text/event-stream; charset=utf-8", "data: 1\n\nevent: message\ndata: 2\n\n", []string{"1", "2"}},
		{"event on lines", "text/event-stream", "data: {\ndata: }\n\n", []string{"{}"}},
		{"other names", "text/event-stream", "event: ping\nid: 4\ndata: 1\n\ndata: 2\n\n", []string{" id 4", "2 id 4"}},
		{"priming", "text/event-stream", "id: a\ndata:\n\nretry: 5\n\n", []string{" id a", " id a retry 5ms"}},
		{"event over the limit", "text/event-stream", "data: " + long + "\n\ndata: 2\n\n", []string{"too long", "2"}},
		{"other name over the limit", "text/event-stream", "event: ping\ndata: " + long + "\n\n", []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			err := testExchange("").Read(response(tt.kind, tt.body), func(in Incoming) error {
				got = append(got, describe(in))
				return nil
			})
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func describe(in Incoming) string {
	s := string(in.Data)
	if in.ID != "" {
		s += " id " + in.ID
	}
	if in.Retry != 0 {
		s += " retry " + in.Retry.String()
	}
	if in.TooLong {
		s += "too long"
	}
	return s
}

func TestReadRefusesOtherContent(t *testing.T) {
	for _, kind := range []string{"", "text/html; charset=utf-8", "text/plain", ";"} {
		err := testExchange("").Read(response(kind, "<html>"), func(Incoming) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "neither JSON nor an event stream") {
			t.Errorf("%q: got %v", kind, err)
		}
	}
}

func TestReadEndsWithTheErrorOfItsReceiver(t *testing.T) {
	for _, kind := range []string{TypeJSON, TypeEvents} {
		calls := 0
		err := testExchange("").Read(response(kind, "data: 1\n\ndata: 2\n\n"), func(Incoming) error {
			calls++
			return io.ErrNoProgress
		})
		if err != io.ErrNoProgress || calls != 1 {
			t.Errorf("%s: got %v after %d calls", kind, err, calls)
		}
	}
}

func TestDoSendsHeadersInTheirOrderOfRank(t *testing.T) {
	got := make(chan *http.Request, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		got <- r
	}))
	defer srv.Close()
	e := testExchange(srv.URL)
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
		_, err := testExchange(tt.url).Do(tt.ctx, "POST", []byte("{}"), nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "user") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzRefused checks that any response that is no success is either an answer with
// the id of the request, on one line, or the end of the session.
func FuzzRefused(f *testing.F) {
	for _, body := range []string{"", "JSON RPC not handled: x", "invalid request: y", `{"jsonrpc":"2.0","id":2,"error":{}}`, `{"jsonrpc":"2.0",
"error":{"code":1,"message":"m"}}`, "<", strings.Repeat("é", 300)} {
		for _, code := range []uint16{300, 400, 401, 404, 429, 500, 503} {
			f.Add(code, "5", body, true)
			f.Add(code, "", body, false)
		}
	}
	f.Fuzz(func(t *testing.T, code uint16, after, body string, session bool) {
		if code < 300 || code > 999 {
			return
		}
		resp := response("text/plain", body)
		resp.StatusCode = int(code)
		resp.Header.Set("Retry-After", after)
		r := ReadRefusal(resp, "2", session)
		if (r.Answer == nil) == (r.Over == nil) {
			t.Fatalf("answer %q and over %v", r.Answer, r.Over)
		}
		if r.Over != nil {
			return
		}
		m, err := jsonrpc.Parse(r.Answer)
		if err != nil || m.Kind != jsonrpc.Response || m.ID != "2" || bytes.ContainsAny(r.Answer, "\r\n") {
			t.Errorf("answer %q: %v", r.Answer, err)
		}
	})
}
