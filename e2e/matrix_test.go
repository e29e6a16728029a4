package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The matrix: each client program over each real server, in each mode. All clients of one
// server and mode are connected at the same time; they count their ids and progress tokens
// alike.
func TestEachClientOverEachServer(t *testing.T) {
	t.Parallel()
	for i, s := range servers() {
		for mode, flags := range modes() {
			if !all && (mode == "Shared") != (i%2 == 1) {
				continue
			}
			t.Run(s.name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				g := startGateway(t, append(flags[:len(flags):len(flags)], s.start(t)...)...)
				var wg sync.WaitGroup
				for _, k := range unlike() {
					// A process and a connection for each step: once for each server is enough.
					if k.oneShot && (k.discovers || mode != "Shared") {
						continue
					}
					wg.Go(func() { (&visit{t: t, server: s, kind: k, url: g.url, owner: k.name}).run() })
				}
				wg.Wait()
			})
		}
	}
}

// Each address serves both transports: each client gets on at the other one too. How many servers
// that costs depends on how soon the client's own initialize comes, which gateway's
// TestClientsOwnInitializeGoesToTheServer counts in fake time.
func TestEachClientAtTheOtherAddress(t *testing.T) {
	forEachClient(t, lasting, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t)...)
		c := connect(t, k, strings.TrimSuffix(g.url, "/mcp")+"/sse")
		wantEcho(t, c)
	})
}

// servers are those of make test, or all.
func servers() []server {
	return slices.DeleteFunc(slices.Concat(stdioServers(), urlServers()), func(s server) bool { return !all && !quickServers[s.name] })
}

// quickServers are one of each kind.
var quickServers = map[string]bool{"Demo": true, "Everything": true, "TypeScript1SSE": true, "GoSDKStreamable": true, "TypeScript2Stateless": true}

// visit is what one client does with one server. It runs in a goroutine, so it
// reports errors and does not end the test.
type visit struct {
	t      *testing.T
	server server
	kind   kind
	url    string
	owner  string // in all that it sends
	c      client
}

func (v *visit) run() {
	v.c = v.kind.open(v.t, v.url, "")
	if v.kind.oneShot {
		v.call(1)
		return
	}
	if err := v.c.connect(within(v.t)); err != nil {
		v.t.Errorf("%s: connect: %v", v.owner, err)
		return
	}
	v.list()
	v.call(10)
	v.progress()
	v.read()
	v.prompt()
	ssetest.Want(v.t, v.owner+": streams that it opened", v.c.saw().Streams, v.kind.streams())
}

func (v *visit) list() {
	names, err := v.c.listTools(within(v.t))
	if err != nil || !slices.Contains(names, v.server.tool) {
		v.t.Errorf("%s: tools = %v, error %v, want %s among them", v.owner, names, err, v.server.tool)
	}
}

// call calls the tool n times at once.
func (v *visit) call(n int) {
	var tokens []string
	var args []map[string]any
	for i := range n {
		tokens = append(tokens, fmt.Sprintf("%s-grüße-世界-%d", v.owner, i))
		args = append(args, v.server.args(tokens[i]))
	}
	texts, err := v.c.callAll(within(v.t), v.server.tool, args)
	if err != nil {
		v.t.Errorf("%s: %s: %v", v.owner, v.server.tool, err)
		return
	}
	for i, token := range tokens {
		if !strings.Contains(texts[i], token) {
			v.t.Errorf("%s: %s(%s) = %q", v.owner, v.server.tool, token, texts[i])
		}
	}
}

func (v *visit) progress() {
	s := v.server
	if s.walk == "" {
		return
	}
	wait := s.steps
	if s.late {
		wait = 0
	}
	got, err := v.c.progress(within(v.t), s.walk, s.pace, wait)
	if err != nil || got > s.steps || got < wait {
		v.t.Errorf("%s: %s reported %d times, error %v, want %d", v.owner, s.walk, got, err, s.steps)
	}
}

func (v *visit) read() {
	if v.server.uri == "" {
		return
	}
	got, err := v.c.read(within(v.t), v.server.uri)
	if err != nil || !strings.Contains(got, v.server.text) {
		v.t.Errorf("%s: %s = %q, error %v, want %q in it", v.owner, v.server.uri, got, err, v.server.text)
	}
}

func (v *visit) prompt() {
	if v.server.prompt == "" {
		return
	}
	got, err := v.c.prompt(within(v.t), v.server.prompt, v.server.wants)
	if err != nil || !strings.Contains(got, v.server.greeting) {
		v.t.Errorf("%s: %s = %q, error %v, want %q in it", v.owner, v.server.prompt, got, err, v.server.greeting)
	}
}
