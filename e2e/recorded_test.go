package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// TestRecordedAgents replays what real agents sent, request by request: each gets the kind of
// answer that it got then, and each message with an id its answer. An agent that works today is
// not lost to a change of the gateway.
func TestRecordedAgents(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("agents/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			ssetest.Must(t, err)
			var r ssetest.Recording
			ssetest.Must(t, json.Unmarshal(data, &r))
			p := startReplayer(t, r)
			for i, e := range r.Exchanges {
				if e.Restart {
					p.restart()
				} else {
					p.replay(i, e)
				}
			}
		})
	}
}

// replayer is the client that a recording makes, and its gateway.
type replayer struct {
	t       *testing.T
	g       *gateway
	args    []string // of the gateway, whose address stays
	http    *http.Client
	session string
	streams []*stream // of HTTP+SSE
}

func startReplayer(t *testing.T, r ssetest.Recording) *replayer {
	t.Helper()
	p := &replayer{t: t, http: newHTTP(t), args: fake(t)}
	p.http.Timeout = patience
	if slices.ContainsFunc(r.Exchanges, func(e ssetest.Exchange) bool { return e.Header["Authorization"] != "" }) {
		tokens := filepath.Join(t.TempDir(), "tokens")
		ssetest.Must(t, os.WriteFile(tokens, []byte("anna:"+recordedToken+"\n"), 0o600))
		p.args = append([]string{"--auth-tokens-file", tokens}, p.args...)
	}
	p.g = startGateway(t, p.args...)
	return p
}

// recordedToken is sent in the place of the word TOKEN in a recording.
const recordedToken = "token-of-anna-0123456789"

// restart stops the gateway and starts it again at its address. Open streams end with it.
func (p *replayer) restart() {
	p.t.Helper()
	addr := strings.TrimSuffix(strings.TrimPrefix(p.g.url, "http://"), "/mcp")
	p.g.stop()
	p.http.CloseIdleConnections()
	p.g = startGateway(p.t, append([]string{"--addr", addr}, p.args...)...)
}

// replay sends a request and checks the kind of its answer.
func (p *replayer) replay(i int, e ssetest.Exchange) {
	p.t.Helper()
	if e.OpensStream() {
		s, err := dialStream(p.t, p.at(e), p.header(e))
		if err != nil {
			p.t.Fatalf("request %d: GET %s: %v", i, e.Path, err)
		}
		p.streams = append(p.streams, s)
		return
	}
	req, err := http.NewRequestWithContext(p.t.Context(), e.Method, p.at(e), bytes.NewReader(e.Body))
	ssetest.Must(p.t, err)
	req.Header = p.header(e)
	resp, err := p.http.Do(req)
	ssetest.Must(p.t, err)
	p.t.Cleanup(func() { resp.Body.Close() })
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		p.session = id
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if kind == "text/event-stream" && e.Type == "application/json" && e.Method == http.MethodPost && e.Status == http.StatusOK {
		kind = e.Type // a slow machine makes an answer a stream
	}
	if resp.StatusCode != e.Status || kind != e.Type {
		body, _ := io.ReadAll(resp.Body) // it is for the message
		p.t.Fatalf("request %d: %s %s %s\nwas answered with %d %q %.300s\nand once with %d %q",
			i, e.Method, e.Path, e.Body, resp.StatusCode, kind, body, e.Status, e.Type)
	}
	if e.Method == http.MethodPost {
		p.wantAnswer(i, e, resp.Body)
	}
}

// at returns the URL of a request.
func (p *replayer) at(e ssetest.Exchange) string {
	if s := p.named(e); s != nil {
		return s.Post
	}
	return strings.TrimSuffix(p.g.url, "/mcp") + e.Path
}

// named returns the stream of HTTP+SSE to which a request belongs, nil if to none.
func (p *replayer) named(e ssetest.Exchange) *stream {
	number, found := strings.CutPrefix(e.Path, "ENDPOINT ")
	if !found {
		return nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(p.streams) {
		p.t.Fatalf("%s: there are %d streams (%v)", e.Path, len(p.streams), err)
	}
	return p.streams[n]
}

// header returns the headers of a request, those of this session and of this gateway.
func (p *replayer) header(e ssetest.Exchange) http.Header {
	h := http.Header{}
	at := strings.TrimSuffix(p.g.url, "/mcp")
	for name, value := range e.Header {
		if name == "Mcp-Session-Id" {
			value = p.session
		}
		h.Set(name, strings.NewReplacer("TOKEN", recordedToken, "http://GATEWAY", at).Replace(value))
	}
	return h
}

// wantAnswer checks that a message with an id has its answer, over the transport's own way.
func (p *replayer) wantAnswer(i int, e ssetest.Exchange, body io.Reader) {
	p.t.Helper()
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(e.Body, &m); err != nil || m.ID == nil || m.Method == "" || m.Method == "subscriptions/listen" || e.Status >= 400 {
		return
	}
	if s := p.named(e); s != nil {
		s.await("answer to "+m.Method, answers("message", string(m.ID)))
		return
	}
	answer, err := io.ReadAll(body)
	if err != nil || !strings.Contains(string(answer), `"id":`+string(m.ID)) {
		p.t.Fatalf("request %d: %s has no answer: %s %v", i, e.Body, answer, err)
	}
}
