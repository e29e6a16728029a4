package sse_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
)

const (
	getsRejected  = "mcp_sse_connections_rejected_total"
	postsRejected = "mcp_sse_posts_rejected_total"
)

// logTo returns a logger that writes lines without a time.
func logTo(out *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// Each client that gets 401, 403, 404 or 405 is in the log and in a metric,
// whatever route it asked for.
func TestRefusedClientsLeaveATrace(t *testing.T) {
	const id = "0d9f3a52-7a0f-4f6e-8f0a-5f3c2b1a0e77"
	const loopback = "127.0.0.1:1"
	rebound := func(r *http.Request) { r.Host = "evil.example" }
	foreign := func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }
	known := func(r *http.Request) { r.Header.Set("Authorization", "Bearer token") }
	for _, tt := range []struct {
		method, target string
		change         func(*http.Request)
		status         int
		series, reason string
		path           string
	}{
		{"GET", "/sse", nil, 401, getsRejected, "auth", "/sse"},
		{"POST", "/sse/" + id + "/message", nil, 401, postsRejected, "auth", "/sse/0d9f3a52…/message"},
		{"GET", "/sse", rebound, 403, getsRejected, "host", "/sse"},
		{"POST", "/sse/" + id + "/message", rebound, 403, postsRejected, "host", "/sse/0d9f3a52…/message"},
		{"GET", "/sse?key=secret", foreign, 403, getsRejected, "origin", "/sse"},
		{"POST", "/sse/" + id + "/message", foreign, 403, postsRejected, "origin", "/sse/0d9f3a52…/message"},
		{"GET", "/mcp", nil, 404, getsRejected, "not_found", "/mcp"},
		{"POST", "/mcp?key=secret", nil, 404, postsRejected, "not_found", "/mcp"},
		{"POST", "/other/sse/" + id + "/message", nil, 404, postsRejected, "not_found", "/other/sse/0d9f3a52…/message"},
		{"POST", "/sse/" + id, nil, 404, postsRejected, "not_found", "/sse/0d9f3a52…"},
		{"GET", "/elsewhere", rebound, 403, getsRejected, "host", "/elsewhere"},
		{"POST", "/sse/" + id + "/message", known, 404, postsRejected, "unknown_connection", "/sse/0d9f3a52…/message"},
		{"POST", "/sse", known, 405, postsRejected, "method", "/sse"},
		{"DELETE", "/sse", known, 405, getsRejected, "method", "/sse"},
		{"GET", "/sse/" + id + "/message", known, 405, getsRejected, "method", "/sse/0d9f3a52…/message"},
		{"GET", "/" + strings.Repeat("a/", 400), nil, 404, getsRejected, "not_found", "/" + strings.Repeat("a/", 400)[:127]},
	} {
		t.Run(fmt.Sprintf("%s %.40s %d", tt.method, tt.target, tt.status), func(t *testing.T) {
			var out bytes.Buffer
			f := newFixture(t, config{sse: sse.Options{Options: front.Options{Authenticate: bearer(t)}}, log: logTo(&out)})
			w := ask(f, loopback, tt.method, tt.target, tt.change)
			if w.Code != tt.status || !isRefusal(w.Body.String()) {
				t.Fatalf("got %d %s, want %d", w.Code, w.Body, tt.status)
			}
			e, _ := refusalOf(w.Body.String())
			want := fmt.Sprintf("level=WARN msg=\"client refused\" reason=%s status=%d method=%s remote=192.0.2.1 path=%s err=%q\n",
				tt.reason, tt.status, tt.method, tt.path, e.Message)
			if got := out.String(); got != want {
				t.Errorf("got the log\n%swant\n%s", got, want)
			}
			if strings.Contains(out.String(), id) || strings.Contains(out.String(), "secret") {
				t.Errorf("the log has what is secret: %s", out.String())
			}
			if n := f.count(t, tt.series, "reason", tt.reason); n != 1 {
				t.Errorf("got %v in %s, want 1", n, tt.series)
			}
			if n := f.count(t, getsRejected) + f.count(t, postsRejected); n != 1 {
				t.Errorf("got %v refusals counted, want 1", n)
			}
		})
	}
}

// A client that is refused again and again does not fill the log, nor hide one
// that is refused for another reason; the metric counts all.
func TestRefusalsAreLoggedAtALimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{Authenticate: bearer(t)}}, log: logTo(&out)})
		for range 100 {
			ask(f, "", http.MethodGet, "/wrong", nil)
		}
		ask(f, "", http.MethodGet, "/sse", nil)
		time.Sleep(time.Second)
		ask(f, "", http.MethodGet, "/wrong", nil)
		var got []string
		for line := range strings.Lines(out.String()) {
			_, reason, _ := strings.Cut(strings.TrimSpace(line), "reason=")
			reason, _, _ = strings.Cut(reason, " ")
			_, suppressed, _ := strings.Cut(strings.TrimSpace(line), "suppressed=")
			got = append(got, reason+" "+suppressed)
		}
		if got, want := strings.Join(got, ", "), "not_found , not_found , not_found , not_found , not_found , auth , not_found 95"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := f.count(t, getsRejected, "reason", "not_found"); n != 101 {
			t.Errorf("counted %v, want 101", n)
		}
	})
}

func TestWrongPathSaysWhatIsServed(t *testing.T) {
	const id = "0d9f3a52-7a0f-4f6e-8f0a-5f3c2b1a0e77"
	root := "no such route: this gateway serves GET /sse and POST /sse/{id}/message"
	below := "no such route: this gateway serves GET /mcp/sse and POST /mcp/sse/{id}/message"
	for _, tt := range []struct{ prefix, path, want string }{
		{"", "/", root},
		{"", "/mcp", root},
		{"", "/sse/", root},
		{"", "/mcp/sse", root + "; if clients use this path through a proxy, set the option prefix to /mcp"},
		{"", "/a/b/sse/" + id + "/message", root + "; if clients use this path through a proxy, set the option prefix to /a/b"},
		{"", "/mcp/sse/" + id, root},
		{"", "/mcp/%3Cb%3E/sse", root}, // nothing that may not be a prefix is sent back
		{"", "//evil.example/sse", root},
		{"", "/" + strings.Repeat("x", 200) + "/sse", root},
		{"/mcp", "/sse", below + "; the option prefix is /mcp, and this path comes without it: does a proxy strip it?"},
		{"/mcp", "/sse/" + id + "/message", below + "; the option prefix is /mcp, and this path comes without it: does a proxy strip it?"},
		{"/mcp", "/mcp/mcp/sse", below + "; if clients use this path through a proxy, set the option prefix to /mcp/mcp"},
		{"/mcp", "/mcp", below},
		{"/mcp", "/mcp/sse/", below},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			f := newFixture(t, config{sse: sse.Options{Options: front.Options{Prefix: tt.prefix}}})
			w := ask(f, "", method, tt.path, nil)
			if e, _ := refusalOf(w.Body.String()); w.Code != http.StatusNotFound || e.Message != tt.want {
				t.Errorf("%s %s with the prefix %q: got %d %q, want %q", method, tt.path, tt.prefix, w.Code, e.Message, tt.want)
			}
		}
	}
}

// What is below no handler is refused in the same way.
func TestElsewhereIsRefused(t *testing.T) {
	var out bytes.Buffer
	prom := prometheus.NewRegistry()
	f := newFixture(t, config{})
	h := f.Elsewhere("nothing here", logTo(&out), metrics.New(prom))
	if w := ask(h, "127.0.0.1:1", http.MethodGet, "/x/sse", func(r *http.Request) { r.Host = "evil.example" }); w.Code != http.StatusForbidden {
		t.Errorf("rebound: got %d", w.Code)
	}
	w := ask(h, "127.0.0.1:1", http.MethodPost, "/x/sse", nil)
	if e, _ := refusalOf(w.Body.String()); w.Code != http.StatusNotFound || e.Message != "nothing here" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	for _, want := range []string{"reason=host status=403 method=GET", `reason=not_found status=404 method=POST remote=192.0.2.1 path=/x/sse err="nothing here"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got the log\n%swant %s", out.String(), want)
		}
	}
	if n := f.count(t, getsRejected) + f.count(t, postsRejected); n != 0 {
		t.Errorf("counted %v for the handler, want none", n)
	}
	g := &fixture{prom: prom}
	if gets, posts := g.count(t, getsRejected, "reason", "host"), g.count(t, postsRejected, "reason", "not_found"); gets != 1 || posts != 1 {
		t.Errorf("counted %v and %v, want 1 and 1", gets, posts)
	}
	if w := ask(f.Elsewhere("x", nil, (*metrics.Metrics)(nil)), "", http.MethodGet, "/", nil); w.Code != http.StatusNotFound {
		t.Errorf("without a logger: got %d", w.Code)
	}
}
