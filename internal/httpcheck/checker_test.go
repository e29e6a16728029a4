package httpcheck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transport has one route, /t, that takes GET and POST.
type transport struct {
	*httpcheck.Checker
	prom *prometheus.Registry
	log  *bytes.Buffer
}

func newTransport(t testing.TB, opts httpcheck.Options) *transport {
	t.Helper()
	h := &transport{prom: metrics.NewRegistry(), log: new(bytes.Buffer)}
	opts.Metrics = metrics.New(h.prom)
	opts.Logger = ssetest.Logger(h.log)
	h.Checker = httpcheck.New(opts)
	return h
}

func (h *transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/t") {
		h.NotFound(w, r, "no such route")
		return
	}
	_, ok := h.Admit(w, r, httpcheck.Route{Methods: "GET, POST", CORS: "GET, POST", Transport: "a test"})
	if !ok || r.Method == http.MethodGet {
		return
	}
	body, why := h.ReadBody(w, r, func(int, int) error { return nil })
	if why == nil {
		_, why = httpcheck.ParseMessage(body.Bytes)
	}
	if why != nil {
		h.RefuseMessage(w, r, why)
	}
}

// count returns the number of refusals for a reason.
func (h *transport) count(t testing.TB, method, reason string) float64 {
	t.Helper()
	name := "mcp_sse_connections_rejected_total"
	if method == http.MethodPost {
		name = "mcp_sse_posts_rejected_total"
	}
	return ssetest.Sum(t, h.prom, name, reason)
}

// ask sends a request to h as if it had come in on a local address; header as name, value.
func ask(h http.Handler, local, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost"
	if local != "" {
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Name: local}))
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// message returns the text of the JSON-RPC error in a body; "" if there is none.
func message(body string) string {
	var answer struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int
			Message string
		}
	}
	if json.Unmarshal([]byte(body), &answer) != nil || answer.JSONRPC != "2.0" || string(answer.ID) != "null" || answer.Error.Code >= 0 {
		return ""
	}
	return answer.Error.Message
}

// Each client that gets 401, 403, 404 or 405 is in the log and in a metric.
func TestRefusedClientsLeaveATrace(t *testing.T) {
	const id = "0d9f3a52-7a0f-4f6e-8f0a-5f3c2b1a0e77"
	authenticate, err := auth.BearerTokens(map[string]string{"token": "someone"})
	ssetest.Must(t, err)
	for _, tt := range []struct {
		method, target string
		header         []string
		status         int
		reason, path   string
	}{
		{"GET", "/t", nil, 401, "auth", "/t"},
		{"POST", "/t/" + id + "/message", nil, 401, "auth", "/t/0d9f3a52…/message"},
		{"GET", "/elsewhere", []string{"Host", "evil.example"}, 403, "host", "/elsewhere"},
		{"POST", "/t", []string{"Host", "evil.example"}, 403, "host", "/t"},
		{"GET", "/t?key=secret", []string{"Origin", "https://evil.example"}, 403, "origin", "/t"},
		{"GET", "/mcp", nil, 404, "not_found", "/mcp"},
		{"POST", "/x/" + id + "?key=secret", nil, 404, "not_found", "/x/0d9f3a52…"},
		{"GET", "/" + strings.Repeat("a/", 400), nil, 404, "not_found", "/" + strings.Repeat("a/", 400)[:127]},
		{"DELETE", "/t", []string{"Authorization", "Bearer token"}, 405, "method", "/t"},
	} {
		h := newTransport(t, httpcheck.Options{Authenticate: authenticate})
		w := ask(h, "127.0.0.1:1", tt.method, tt.target, "", tt.header...)
		want := fmt.Sprintf("level=WARN msg=\"client refused\" reason=%s status=%d method=%s remote=192.0.2.1 path=%s err=%q\n",
			tt.reason, tt.status, tt.method, tt.path, message(w.Body.String()))
		if w.Code != tt.status || h.log.String() != want {
			t.Errorf("%s %.40s: got %d %s, and the log\n%swant %d and\n%s", tt.method, tt.target, w.Code, w.Body, h.log, tt.status, want)
		}
		ssetest.Want(t, fmt.Sprintf("%s %.40s: counted under %s", tt.method, tt.target, tt.reason), h.count(t, tt.method, tt.reason), 1)
		if allow := w.Header().Get("Allow"); tt.status == 405 && allow != "GET, POST" {
			t.Errorf("got Allow %q", allow)
		}
	}
}

// A client that is refused again and again does not fill the log, nor hide one
// that is refused for another reason; the metric counts all.
func TestRefusalsAreLoggedAtALimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTransport(t, httpcheck.Options{})
		for range 100 {
			ask(h, "", http.MethodGet, "/wrong", "")
		}
		ask(h, "", http.MethodPut, "/t", "")
		time.Sleep(time.Second)
		ask(h, "", http.MethodGet, "/wrong", "")
		lines := strings.Split(strings.TrimSpace(h.log.String()), "\n")
		if len(lines) != 7 || !strings.Contains(lines[5], "reason=method") || !strings.HasSuffix(lines[6], "suppressed=95") {
			t.Errorf("got the log\n%s", h.log)
		}
		ssetest.Want(t, "counted", h.count(t, http.MethodGet, "not_found"), 101)
	})
}

// A connection for which there is no room is refused. Only for one too many in all does it
// help to end another one.
func TestRefusedConnections(t *testing.T) {
	for reason, tt := range map[string]struct {
		limits connstate.Limits
		status int
		after  string
	}{
		metrics.RejectedMaxConnections: {connstate.Limits{MaxConnections: 1}, 503, "5"},
		metrics.RejectedPerIP:          {connstate.Limits{MaxPerIP: 1}, 429, "5"},
		metrics.RejectedRate:           {connstate.Limits{Rate: 0.4, Burst: 1}, 429, "3"},
		metrics.RejectedDraining:       {connstate.Limits{}, 503, "5"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, evicted := newTransport(t, httpcheck.Options{}), ""
			registry, client := connstate.NewRegistry(tt.limits, connstate.Options{}), connstate.Client{Addr: netip.MustParseAddr("192.0.2.1")}
			c, why := h.Open(registry, client, "", nil)
			if why != nil {
				t.Fatalf("%s: %+v", reason, why)
			}
			if reason == metrics.RejectedDraining {
				registry.Drain()
			}
			_, why = h.Open(registry, client, "", func() bool { evicted = metrics.RejectedMaxConnections; return false })
			w := httptest.NewRecorder()
			h.RefuseMessage(w, httptest.NewRequest(http.MethodGet, "/t", nil), why)
			if after := w.Header().Get("Retry-After"); w.Code != tt.status || after != tt.after || message(w.Body.String()) == "" {
				t.Errorf("%s: got %d %s, Retry-After %q, want %d, %s", reason, w.Code, w.Body, after, tt.status, tt.after)
			}
			if (evicted == reason) != (evicted != "") {
				t.Errorf("%s: another connection was to end", reason)
			}
			registry.Remove(c.Connection)
		})
	}
}
