package e2e

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// probing is what clients send to a URL whose transport they do not know: they take the
// first of these ways whose first request is not refused.
type probing struct {
	clients string
	accept  string // the header of their POSTs
	ways    [][]string
}

// The lines of a way:
//
//	POST METHOD  a message over Streamable HTTP
//	GET          the session's own stream
//	ANEW         what follows is of another client in the same program
//	STREAM       a stream of HTTP+SSE
//	SEND METHOD  a message on it
var (
	overPOST  = []string{"POST initialize", "POST notifications/initialized", "GET", "POST tools/list", "POST tools/call"}
	overGET   = []string{"STREAM", "SEND initialize", "SEND notifications/initialized", "SEND tools/list", "SEND tools/call"}
	mcpRemote = slices.Concat(overPOST[:3], []string{"ANEW"}, overPOST)
)

const (
	jsonFirst   = "application/json, text/event-stream"
	streamFirst = "text/event-stream, application/json"
)

var probings = []probing{
	{"TypeScript SDK, Cursor, Gemini CLI, Trae", jsonFirst, [][]string{overPOST, overGET}},
	{"VS Code", streamFirst, [][]string{overPOST, overGET}},
	{"Codex, Kiro CLI", streamFirst, [][]string{overPOST}},
	{"Cline, Qoder", "", [][]string{overGET}},
	{"mcp-remote", jsonFirst, [][]string{mcpRemote, overGET}},
	{"mcp-remote, SSE first", jsonFirst, [][]string{overGET, mcpRemote}},
}

// Each client gets a working session at each address, and starts no server in vain. If one
// transport is switched off, so do the clients that know the other one.
func TestClientsThatProbe(t *testing.T) {
	t.Parallel()
	for transports, without := range map[string]string{"sse,streamable": "", "sse": "POST", "streamable": "STREAM"} {
		t.Run(transports, func(t *testing.T) {
			t.Parallel()
			g := launch(t, append([]string{"--transports", transports}, fake(t)...)...)
			address := "http://" + g.awaitMatch("the address", &g.log, listenAddr)
			for _, p := range probings {
				if len(p.ways) == 1 && strings.HasPrefix(p.ways[0][0], without) && without != "" {
					continue
				}
				for _, path := range []string{"/mcp", "/sse"} {
					t.Run(p.clients+path, func(t *testing.T) { p.run(t, g, address+path) })
				}
			}
		})
	}
}

// listenAddr is the attribute of the log line that tells where the gateway listens.
var listenAddr = regexp.MustCompile(`"addr":"([^"]+)"`)

func (p probing) run(t *testing.T, g *gateway, url string) {
	before := len(g.started())
	for _, way := range p.ways {
		c := &prober{t: t, http: newHTTP(t), url: url, accept: p.accept}
		if c.refused(way[0]) {
			continue
		}
		sessions := 1
		for _, line := range way[1:] {
			if line == "ANEW" {
				sessions++
			}
			if c.refused(line) {
				t.Fatalf("%s was refused", line)
			}
		}
		// A session that only tries costs a server until the gateway remembers what that says.
		if started := len(g.started()) - before; started < 1 || started > sessions {
			t.Errorf("%d servers were started for %d sessions", started, sessions)
		}
		return
	}
	t.Error("each way was refused")
}

// prober sends the lines of a way.
type prober struct {
	t           *testing.T
	http        *http.Client
	url, accept string
	session     string
	stream      *stream
}

// refused sends what a line says, checks the answer, and reports whether it is one at
// which clients take another way.
func (c *prober) refused(line string) bool {
	c.t.Helper()
	verb, method, _ := strings.Cut(line, " ")
	m := probes[method]
	switch verb {
	case "POST", "GET":
		return c.request(verb, m)
	case "ANEW":
		c.session = ""
	case "STREAM":
		c.stream, _ = tryStream(c.t, c.url)
		return c.stream == nil
	case "SEND":
		if c.stream.accepted(m.body); m.answer != "" {
			c.stream.await(m.answer, func(e event) bool { return e.Name == "message" && strings.Contains(e.Data, m.answer) })
		}
	}
	return false
}

// probe is what a client sends, and a part of its answer.
type probe struct{ body, answer string }

var probes = map[string]probe{
	"initialize": {requestJSON("0", "initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"probing","version":"1"}}`), `"protocolVersion":"2025-11-25"`},
	"notifications/initialized": {body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
	"tools/list":                {requestJSON("1", "tools/list", "{}"), `"name":"echo"`},
	"tools/call":                {requestJSON("2", "tools/call", callParams("echo", `{"message":"it works"}`)), `"text":"it works"`},
}

// request is a request of Streamable HTTP. A request for a stream stays open.
func (c *prober) request(method string, m probe) (refused bool) {
	c.t.Helper()
	headers := []string{"Accept", map[string]string{"GET": "text/event-stream", "POST": c.accept}[method]}
	if c.session != "" {
		headers = append(headers, "Mcp-Session-Id", c.session, "MCP-Protocol-Version", "2025-11-25")
	}
	req := ssetest.Request(within(c.t), method, c.url, m.body, headers...)
	resp, err := c.http.Do(req)
	ssetest.Must(c.t, err)
	c.t.Cleanup(func() { resp.Body.Close() })
	if c.session == "" {
		c.session = resp.Header.Get("Mcp-Session-Id")
	}
	if method == http.MethodPost && resp.StatusCode < 400 {
		if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), m.answer) {
			c.t.Fatalf("%s was answered with %s %s (%v), want %s in it", m.body, resp.Status, body, err, m.answer)
		}
	}
	return resp.StatusCode >= 400
}
