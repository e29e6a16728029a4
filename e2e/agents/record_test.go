//go:build agents

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// record, if set, is the directory for what TestRecord records.
var record = flag.String("record", "", "record what the agents send in this directory")

// recording returns a file of testdata, which TestRecordedAgents of package e2e reads: a JSON
// object with one exchange a line.
func recording(t *testing.T, agent, version string, exchanges []exchange) []byte {
	t.Helper()
	var lines []string
	for _, e := range exchanges {
		lines = append(lines, quote(t, e))
	}
	return fmt.Appendf(nil, "{\"agent\":%q,\"version\":%q,\"exchanges\":[\n%s\n]}\n", agent, version, strings.Join(lines, ",\n"))
}

// exchange is a request and the kind of its answer, or the restart of the gateway.
type exchange struct {
	Restart bool              `json:"restart,omitempty"`
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path,omitempty"` // ENDPOINT: that of the last stream of HTTP+SSE
	Header  map[string]string `json:"header,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Status  int               `json:"status,omitempty"`
	Type    string            `json:"type,omitempty"` // of the content
}

// recorder passes requests on to a gateway, and keeps them.
type recorder struct {
	*httptest.Server
	t *testing.T

	mu   sync.Mutex
	kept []*exchange // guarded by mu, as is what they point to
}

// exchangeKey is that of the exchange in the context of a request.
type exchangeKey struct{}

func startRecorder(t *testing.T, gateway string) *recorder {
	t.Helper()
	at, err := url.Parse(gateway)
	ssetest.Must(t, err)
	r := &recorder{t: t}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(at)
			p.Out.Host = p.In.Host
		},
		ModifyResponse: r.keepAnswer,
		// An agent whose gateway is not there gets no answer.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the agent has gone
		}
		e := r.keep(req, body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), exchangeKey{}, e)))
	}))
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
		transport.CloseIdleConnections()
	})
	return r
}

// keep notes a request. Its answer comes later.
func (r *recorder) keep(req *http.Request, body []byte) *exchange {
	e := &exchange{Method: req.Method, Path: req.URL.RequestURI(), Header: map[string]string{}, Body: body}
	if len(body) == 0 {
		e.Body = nil
	}
	for name, values := range req.Header {
		e.Header[name] = strings.Join(values, ", ")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, e)
	return e
}

func (r *recorder) keepAnswer(resp *http.Response) error {
	e := resp.Request.Context().Value(exchangeKey{}).(*exchange)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Status = resp.StatusCode
	e.Type, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	return nil
}

// restarted notes the restart of the gateway.
func (r *recorder) restarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, &exchange{Restart: true})
}

// uuids and times are what agents put into the metadata of their messages.
var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\b1[0-9]{12}\b`) // in milliseconds
)

const noUUID = "00000000-0000-4000-8000-000000000000"

// exchanges returns what was kept without what is another in each run: ids of sessions, the
// token, addresses, and headers of the connection. Requests without an answer are left out: the
// gateway was not there.
func (r *recorder) exchanges(home string) []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	tame := strings.NewReplacer(token, "TOKEN", r.URL, "http://GATEWAY", strings.TrimPrefix(r.URL, "http://"), "GATEWAY", home, "/HOME").Replace
	var all []exchange
	for _, e := range r.kept {
		if !e.Restart && e.Status == 0 {
			continue
		}
		out := *e
		if out.Method == http.MethodPost && strings.HasSuffix(out.Path, "/message") {
			out.Path = "ENDPOINT"
		}
		out.Body = json.RawMessage(times.ReplaceAllString(uuids.ReplaceAllString(tame(string(e.Body)), noUUID), "0"))
		out.Header = map[string]string{}
		for name, value := range e.Header {
			switch name {
			case "Content-Length", "Connection", "Traceparent", "Tracestate", "Baggage":
				continue
			case "Mcp-Session-Id":
				value = "SESSION"
			case "Last-Event-Id":
				value = "EVENT"
			}
			out.Header[name] = tame(value)
		}
		if len(out.Body) == 0 {
			out.Body = nil
		}
		all = append(all, out)
	}
	return all
}

// TestRecord records what each agent sends over each transport of HTTP: it calls a tool, and
// again after the gateway was restarted.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("no -record: this test writes the recordings that package e2e replays")
	}
	forEachAgent(t, func(t *testing.T, a agent) {
		for over, path := range map[transport]string{streamable: "/mcp", sse: "/sse"} {
			if !a.takes(over) {
				continue
			}
			command, _ := serverCommand(t)
			tokens := filepath.Join(t.TempDir(), "tokens")
			write(t, tokens, "anna:"+token+"\n")
			g := startGateway(t, command, "--auth-tokens-file", tokens)
			r := startRecorder(t, g.url(""))
			again := func() {
				g.restart()
				r.restarted()
			}
			opened := func() {
				await(5*time.Second, func() bool { return strings.Count(g.log.String(), `msg="connection opened"`) > 1 })
			}
			echo := step{tool: "echo", arguments: `{"message":"hello"}`}
			restarted, last := echo, echo
			restarted.before, last.before = again, opened
			m := startModel(t, echo, restarted, last)
			printed, _ := a.run(t, target{over: over, url: r.URL + path}, m, 3*time.Minute)
			if result, _ := m.result(0); !strings.Contains(result, "hello") {
				t.Fatalf("nothing to record: %s\n%s", printed, m.journal())
			}
			v, err := version(a.npm)
			ssetest.Must(t, err)
			name := strings.ToLower(strings.ReplaceAll(a.name, " ", "-")) + strings.ReplaceAll(path, "/", "-") + ".json"
			ssetest.Must(t, os.MkdirAll(*record, 0o755))
			ssetest.Must(t, os.WriteFile(filepath.Join(*record, name), recording(t, a.name, v, r.exchanges(os.TempDir())), 0o644))
		}
	})
}
