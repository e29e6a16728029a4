package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load loads a configuration that must be right.
func load(t *testing.T, args ...string) *config.Config {
	t.Helper()
	c, err := config.Load(args, clitest.Environment(nil), new(config.Config))
	ssetest.Must(t, err)
	return c
}

// No text of a server can steer the terminal.
func TestControlCharactersAreVisible(t *testing.T) {
	const evil = "x\x1b]0;evil\a"
	var out bytes.Buffer
	m := &Check{Stdout: &out}
	m.tellStep(diagnosis.Step{Name: evil, Detail: evil, Remedy: evil})
	m.tellLosses("cursor", clients.Offer{Name: evil, Tools: []clients.Tool{{Name: strings.Repeat(evil, 10)}}})
	(&startCheck{out: &out, live: new(terminal.Line)}).say(evil, failed(load(t, "--", "x").Each()[0], 0, errors.New(evil+"; stderr: "+evil))...)
	if strings.ContainsAny(out.String(), "\x1b\a") || strings.Count(out.String(), "\\x1b") < 6 {
		t.Errorf("got %q", out.String())
	}
}

// The line of a server says how much of it is offered, and which rules are probably typing errors.
func TestSummaryOfASelection(t *testing.T) {
	list := func(key string, names ...string) (all []json.RawMessage) {
		for _, name := range names {
			all = append(all, json.RawMessage(fmt.Sprintf(`{%q:%q}`, key, name)))
		}
		return all
	}
	found := handshake.Found{
		Server: handshake.Server{Name: "s", ProtocolVersion: "2025-11-25"}, Tools: list("name", "read_a", "read_b", "write"),
		Prompts: list("name", "p"), Resources: list("uri", "x:1", "y:1"), Templates: list("uriTemplate", "z:{a}"),
	}
	for want, args := range map[string][]string{
		"s, MCP 2025-11-25: 3 tools, 1 prompt, 2 resources (now)":           nil,
		"s, MCP 2025-11-25: 2 of 3 tools, 1 prompt, 1 of 2 resources (now)": {"--include", "read_*", "--resources", "x:*", "--resources", "z:*"},
		"s, MCP 2025-11-25: 0 of 3 tools, 0 of 1 prompt, 2 resources (now)\nWARNING: include \"red_*\" meets nothing that the server lists\nWARNING: prompts \"q\" meets nothing that the server lists": {"--include", "red_*", "--prompts", "q"},
	} {
		rules := load(t, append(args, "--", "x")...).Each()[0].Rules()
		lines := append([]string{summary("s", found, rules, "now")}, unmet(rules, found)...)
		ssetest.Want(t, strings.Join(args, " "), strings.Join(lines, "\n"), want)
	}
}

// silent is a server whose start goes on until it is given up.
type silent struct{}

func (silent) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// By default that takes five seconds at most.
func TestWrongStartIsToldWithinFiveSeconds(t *testing.T) {
	c := load(t, "--", "bash")
	synctest.Test(t, func(t *testing.T) {
		gw, err := gateway.New(silent{}, gateway.Options{})
		ssetest.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { ssetest.Must(t, gw.Shutdown(context.WithoutCancel(ctx))) }()
		var out ssetest.Output
		ended := make(chan struct{})
		go func() { // ends with ctx
			defer close(ended)
			(&Check{Stdout: &out, Live: new(terminal.Line)}).Starts(ctx, map[string]*gateway.Gateway{"": gw}, c)
		}()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		ssetest.WantText(t, "after 5 s", out.String(), "What to do: name an MCP server")
		cancel()
		<-ended
	})
}

// A server of which nothing is known has twice the time, and one that says that it is in its stdio mode has all of it.
// Of HTTP, or a port, it is told at once.
func TestServersThatTakeTheirTimeAreLeftAlone(t *testing.T) {
	const (
		unread = "; it has not read what was sent to its stdin: it still boots, or has to be started in its stdio mode"
		wait   = "What to do: wait, if it boots for long; else name a program"
		http   = "What to do: serve it with --url http://127.0.0.1:3001/mcp"
	)
	s := load(t, "--", "x").Each()[0]
	for _, test := range []struct{ words, excuse, soon, later string }{
		{"Starting default (STDIO) server...", "", "", ""},
		{"Starting default (STDIO) server...", unread, "", ""},
		{"Loading the model", "", "", wait},
		{"", unread, "", wait},
		{"", "", "", wait},
		{"Starting Streamable HTTP server on port 3001", "", http, http},
		{"Server running on stdio | Server listening on http://localhost:3001/mcp", unread, http, http},
	} {
		for isLong, want := range map[bool]string{false: test.soon, true: test.later} {
			got := strings.Join(late(s, test.words, test.excuse, isLong), "\n")
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%q, %q, long: %t: got %q, want %q", test.words, test.excuse, isLong, got, want)
			}
		}
	}
}

// failing is a server whose start takes a second and fails. It counts the starts that go on at a time.
type failing struct {
	mu        sync.Mutex
	now, most int
}

func (f *failing) Dial(context.Context) (jsonrpc.Conn, error) {
	f.count(1)
	defer f.count(-1)
	time.Sleep(time.Second)
	return nil, errors.New("it fails")
}

func (f *failing) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += n
	f.most = max(f.most, f.now)
}

// As many servers are checked at a time as there are processors.
func TestAsManyServersAreCheckedAsThereAreProcessors(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	file := "servers:\n"
	for n := range 3 * cores {
		file += fmt.Sprintf("  s%d: {command: [sh]}\n", n)
	}
	c := load(t, "-c", clitest.WriteFile(t, "gw.yaml", file))
	synctest.Test(t, func(t *testing.T) {
		f := new(failing)
		gateways := map[string]*gateway.Gateway{}
		for _, s := range c.Each() {
			gw, err := gateway.New(f, gateway.Options{})
			ssetest.Must(t, err)
			defer func() { ssetest.Must(t, gw.Shutdown(t.Context())) }()
			gateways[s.Name] = gw
		}
		var out bytes.Buffer
		began := time.Now()
		(&Check{Stdout: &out, Live: new(terminal.Line)}).Starts(t.Context(), gateways, c)
		ssetest.Want(t, "servers that have failed", strings.Count(out.String(), "FAILED after 1.0 s: "), 3*cores)
		ssetest.Want(t, "checks at a time", f.most, cores)
		ssetest.Want(t, "time", time.Since(began), 3*time.Second)
	})
}

// A server at which each person logs in is not tried: nothing has failed, also in a view.
func TestServerOfPersonsIsNotTried(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:s3cret-0123456789-0123456789\n")
	file := clitest.WriteFile(t, "gw.yaml", "public-url: https://gw.example.com\nauth-tokens-file: "+tokens+
		"\nservers: {notes: {url: \"https://mcp.example.com/mcp\", login: per-principal}}\nviews: {all: {servers: {notes: {}}}}\n")
	const why = "each person logs in by a link that their client gets"
	for _, test := range []struct{ args, want string }{
		{"check --start", "notes: not checked: " + why + "\nall: 0 tools; without those of notes\n"},
		{"tools", "notes: not asked: " + why + "\n"},
	} {
		c, err := config.Load(append(strings.Fields(test.args), "-c", file), clitest.Environment(clitest.State(t)), new(config.Config))
		ssetest.Must(t, err)
		var out bytes.Buffer
		m := &Check{Stdout: &out, Stderr: &out, Live: new(terminal.Line)}
		open := func(s *config.Server) (*gateway.Gateway, error) {
			return nil, fmt.Errorf("%s was opened", c.Title(s))
		}
		run := m.Try
		if test.args == "tools" {
			run = m.Tools
		}
		ssetest.Want(t, test.args+": exit code", run(c, open, nil), exit.OK)
		ssetest.WantText(t, test.args, out.String(), test.want)
		if text := out.String(); strings.Contains(text, "FAILED") || strings.Contains(text, "what to do") {
			t.Errorf("%s: %s", test.args, text)
		}
	}
}
