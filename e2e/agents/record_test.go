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
func recording(t *testing.T, agent, version string, exchanges []ssetest.Exchange) []byte {
	t.Helper()
	var lines []string
	for _, e := range exchanges {
		lines = append(lines, quote(t, e))
	}
	return fmt.Appendf(nil, "{\"agent\":%q,\"version\":%q,\"exchanges\":[\n%s\n]}\n", agent, version, strings.Join(lines, ",\n"))
}

// recorder passes requests on to a gateway, and keeps them.
type recorder struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	kept      []*ssetest.Exchange // guarded by mu, as is what they point to
	streams   int                 // guarded by mu; of HTTP+SSE
	endpoints map[string]int      // guarded by mu; the number of the stream that named it
}

// exchangeKey is that of the exchange in the context of a request.
type exchangeKey struct{}

func startRecorder(t *testing.T, gateway string) *recorder {
	t.Helper()
	at, err := url.Parse(gateway)
	ssetest.Must(t, err)
	r := &recorder{t: t, endpoints: map[string]int{}}
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
func (r *recorder) keep(req *http.Request, body []byte) *ssetest.Exchange {
	e := &ssetest.Exchange{Method: req.Method, Path: req.URL.RequestURI(), Header: map[string]string{}, Body: body}
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
	e := resp.Request.Context().Value(exchangeKey{}).(*ssetest.Exchange)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Status = resp.StatusCode
	e.Type, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	if e.OpensStream() {
		resp.Body = &endpointReader{ReadCloser: resp.Body, r: r, stream: r.streams}
		r.streams++
	}
	return nil
}

// endpointReader finds the endpoint that a stream names first.
type endpointReader struct {
	io.ReadCloser
	r      *recorder
	stream int
	begin  []byte // until it is found
	found  bool
}

var endpoint = regexp.MustCompile(`(?m)^data: (\S+)\n`)

func (b *endpointReader) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.found {
		return n, err
	}
	b.begin = append(b.begin, p[:n]...)
	if named := endpoint.FindSubmatch(b.begin); named != nil {
		b.found, b.begin = true, nil
		b.r.mu.Lock()
		defer b.r.mu.Unlock()
		b.r.endpoints[string(named[1])] = b.stream
	}
	return n, err
}

// restarted notes the restart of the gateway.
func (r *recorder) restarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, &ssetest.Exchange{Restart: true})
}

// uuids and times are what agents put into the metadata of their messages.
var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\b1[0-9]{12}\b`) // in milliseconds
)

const noUUID = "00000000-0000-4000-8000-000000000000"

// deletedAfter reports whether the next request deletes the session. One that was refused before
// it came at the same time. r.mu is held.
func (r *recorder) deletedAfter(i int) bool {
	return i+1 < len(r.kept) && r.kept[i+1].Method == http.MethodDelete
}

// exchanges returns what was kept without what is another in each run: ids of sessions, the
// token, addresses, and headers of the connection. Requests without an answer are left out: the
// gateway was not there.
func (r *recorder) exchanges(home string) []ssetest.Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	tame := strings.NewReplacer(token, "TOKEN", r.URL, "http://GATEWAY", strings.TrimPrefix(r.URL, "http://"), "GATEWAY", home, "/HOME").Replace
	var all []ssetest.Exchange
	for i, e := range r.kept {
		if !e.Restart && e.Status == 0 || e.Status == http.StatusNotFound && r.deletedAfter(i) {
			continue
		}
		out := *e
		if n, ok := r.endpoints[out.Path]; ok {
			out.Path = fmt.Sprint("ENDPOINT ", n)
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

// recordedAt has the addresses at which each agent is recorded, by the ends of the files' names.
var recordedAt = map[string]target{
	"mcp":  {over: streamable, url: "/mcp"},
	"sse":  {over: sse, url: "/sse"},
	"open": {over: streamable, url: "/mcp", open: true}, // some look for an OAuth server first
}

// TestRecord records what each agent sends over each transport of HTTP: it calls a tool, and
// again after the gateway was restarted.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("no -record: this test writes the recordings that package e2e replays")
	}
	ssetest.Must(t, os.MkdirAll(*record, 0o755))
	forEachAgent(t, func(t *testing.T, a agent) {
		v, err := version(a.npm)
		ssetest.Must(t, err)
		for end, at := range recordedAt {
			if a.takes(at.over) {
				name := strings.ToLower(strings.ReplaceAll(a.name, " ", "-")) + "-" + end + ".json"
				ssetest.Must(t, os.WriteFile(filepath.Join(*record, name), recording(t, a.name, v, recordOne(t, a, at)), 0o644))
			}
		}
	})
}

// recordOne returns what an agent sends to a gateway that is restarted.
func recordOne(t *testing.T, a agent, at target) []ssetest.Exchange {
	t.Helper()
	turns <- struct{}{}
	defer func() { <-turns }()
	command, _ := serverCommand(t)
	var flags []string
	if !at.open {
		tokens := filepath.Join(t.TempDir(), "tokens")
		write(t, tokens, "anna:"+token+"\n")
		flags = []string{"--auth-tokens-file", tokens}
	}
	g := startGateway(t, t.TempDir(), command, flags...)
	r := startRecorder(t, g.url(""))
	steps := calls(hello, hello, hello)(nil)
	steps[1].before = func() {
		g.restart()
		r.restarted()
	}
	steps[2].before = func() {
		await(5*time.Second, func() bool { return strings.Count(g.log.String(), `msg="connection opened"`) > 1 })
	}
	m := startModel(t, nil, steps...)
	at.url = r.URL + at.url
	printed, _ := a.run(t, t.TempDir(), at, m, 3*time.Minute)
	if result, _ := m.result(0); !strings.Contains(result, "hello") {
		t.Fatalf("nothing to record: %s\n%s", printed, m.journal())
	}
	return r.exchanges(os.TempDir())
}
