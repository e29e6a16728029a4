//go:build agents

package agents

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// long is how long a long call takes: make agents has it take longer than any default of an SDK.
var long = flag.Duration("long", 5*time.Second, "how long a long call takes")

// forEachAgent runs the test once for each agent, some at a time.
func forEachAgent(t *testing.T, test func(t *testing.T, a agent)) {
	t.Helper()
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			test(t, a)
		})
	}
}

// played is what an agent did.
type played struct {
	t       *testing.T
	a       agent
	m       *model
	g       *gateway // nil: the agent started the server
	command []string // of the server
	file    string   // the server's journal
	view    *view    // nil: the agent has the server alone
	state   string   // the state directory of sse-server
	home    string   // of the agent
	printed string
	ended   bool // by itself
}

// setup is what a test wants of a run beside the steps of the model.
type setup struct {
	over   transport // empty: streamable
	server []string  // flags of the server
	flags  []string  // of the gateway
	view   bool      // the server is the quick one of a view
	waits  bool      // mostly, so that many may at a time
	after  *played   // nil, or a run whose command, view, state and home this one has
	folder string    // in which the agent starts sse-server; empty: its own
	limit  time.Duration
	// before, if not nil, runs when the gateway is up, before the agent is started.
	before func(p *played)
	// steps returns those of the model. It gets the run, for what happens between them.
	steps func(p *played) []step
}

// turns bounds how many agents run at a time: more would make the fast ones slow.
var turns = make(chan struct{}, 4)

// play starts a server, a gateway before it and a model, runs the agent with them to its end,
// and returns what came of it.
func play(t *testing.T, a agent, s setup) *played {
	t.Helper()
	if !s.waits {
		turns <- struct{}{}
		defer func() { <-turns }()
	}
	p := &played{t: t, a: a, state: ssetest.PrivateDir(t), home: t.TempDir()}
	p.command, p.file = serverCommand(t, s.server...)
	if s.view {
		p.view = newView(t, p.command)
	}
	if s.after != nil {
		p.command, p.file, p.state, p.home = s.after.command, s.after.file, s.after.state, s.after.home
		p.view = s.after.view
	}
	if s.over == "" {
		s.over = streamable
	}
	if s.limit == 0 {
		s.limit = 3 * time.Minute
	}
	at := target{over: s.over}
	if s.over == stdio {
		at.command = []string{"/usr/bin/env"}
		if s.folder != "" {
			at.command = append(at.command, "--chdir="+s.folder)
		}
		at.command = append(append(at.command, "XDG_STATE_HOME="+p.state, sseServer(t), "stdio", "--"), p.command...)
	} else {
		tokens := filepath.Join(t.TempDir(), "tokens")
		write(t, tokens, "anna:"+token+"\n")
		command, flags, below := p.command, append([]string{"--auth-tokens-file", tokens}, s.flags...), ""
		if p.view != nil {
			command, flags, below = nil, append(flags, "--config", p.view.config), "/"+p.view.name
		}
		p.g = startGateway(t, p.state, command, flags...)
		at.url = p.g.url(below + map[transport]string{streamable: "/mcp", sse: "/sse"}[s.over])
	}
	var earlier *model // an agent may tell its servers where its model is
	if s.after != nil {
		earlier = s.after.m
	}
	p.m = startModel(t, earlier, s.steps(p)...)
	if s.before != nil {
		s.before(p)
	}
	p.printed, p.ended = a.run(t, p.home, at, p.m, s.limit)
	return p
}

// calls returns steps that call tools without arguments, or one with its arguments.
func calls(tools ...string) func(*played) []step {
	return func(*played) []step {
		var all []step
		for _, tool := range tools {
			name, arguments, _ := strings.Cut(tool, " ")
			all = append(all, step{tool: name, arguments: arguments})
		}
		return all
	}
}

const hello = `echo {"message":"hello"}`

// got reports whether the result of a step has the text.
func (p *played) got(at int, text string) bool {
	result, ok := p.m.result(at)
	return ok && strings.Contains(result, text)
}

// echoed reports whether a step's call of echo had its result.
func (p *played) echoed(at int) bool { return p.got(at, "called with ") && p.got(at, "hello") }

// journal returns what the server saw.
func (p *played) journal() string { return contentOf(p.file) }

// contentOf returns what a file has, or why it cannot be read.
func contentOf(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// await waits until the condition holds, for at most so long: an agent may do without.
func await(limit time.Duration, condition func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !condition() && time.Now().Before(deadline); <-tick.C {
	}
}

// point notes in the table how an agent does at a point, in words if it is not simply yes or no.
// A no fails the test, unless it is known, and so does a yes where a no is.
func (p *played) point(column string, ok bool, words string) {
	p.t.Helper()
	if !p.ended {
		ok, words = false, "hangs"
	}
	if words == "" {
		words = map[bool]string{true: "yes", false: "no"}[ok]
	}
	table.set(p.a.name, column, words)
	reason, known := p.a.lacks[column]
	switch {
	case ok && known:
		p.t.Errorf("%s: %s, and it is listed as lacking this: %s", column, words, reason)
	case !ok && !known:
		p.t.Errorf("%s: %s\n%s", column, words, p)
	default:
		p.t.Logf("%s: %s", column, words)
	}
}

// measure notes in the table how an agent does at a point of which nothing is expected.
func (p *played) measure(column string, ok bool) {
	p.t.Helper()
	words := map[bool]string{true: "yes", false: "no"}[ok]
	table.set(p.a.name, column, words)
	p.t.Logf("%s: %s", column, words)
}

// String returns all there is to know about a run.
func (p *played) String() string {
	var s strings.Builder
	for at, step := range p.m.steps {
		result, ok := p.m.result(at)
		fmt.Fprintf(&s, "%s: %v %.300s\n", step.tool, ok, result)
	}
	fmt.Fprintf(&s, "the model:\n%sthe server:\n%.3000sthe agent:\n%.3000s", p.m.journal(), p.journal(), p.printed)
	if p.view != nil {
		fmt.Fprintf(&s, "the slow server of the view:\n%.3000s", p.view.journal())
	}
	return s.String()
}

func TestConnects(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		for over, column := range map[transport]string{streamable: "/mcp", sse: "/sse", stdio: "stdio"} {
			if !a.takes(over) {
				table.set(a.name, column, "–")
				continue
			}
			p := play(t, a, setup{over: over, steps: calls(hello)})
			words := ""
			if over == sse && p.echoed(0) && !strings.Contains(p.g.log.String(), "transport=sse") {
				words = "as /mcp" // the gateway has both at both addresses
			}
			p.point(column, p.echoed(0), words)
			if over == streamable {
				p.point("token", p.echoed(0), "") // the gateway asks for it
			}
		}
	})
}

// A gateway that has been there for a while has a server ready for the agent, however long that
// takes to start.
func TestSlowStart(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		for _, boot := range []string{"0.3s", "2.5s", "8s", "20s"} {
			p := play(t, a, setup{server: []string{"--boot", boot}, steps: calls(hello), before: func(p *played) {
				await(patience, func() bool { return strings.Contains(p.journal(), " ready\n") })
			}})
			p.point("boot "+boot, p.echoed(0), "")
		}
	})
}

// An agent that comes before the server is up shows how long it waits.
func TestColdStart(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		for _, boot := range []string{"2.5s", "8s", "20s"} {
			p := play(t, a, setup{server: []string{"--boot", boot}, steps: calls(hello)})
			p.measure("cold "+boot, p.echoed(0))
		}
	})
}

// From the second start on, the gateway remembers what the server said to this agent, and has its
// tools at once.
func TestSecondStart(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		for _, boot := range []string{"2.5s", "8s", "20s"} {
			first := play(t, a, setup{server: []string{"--boot", boot}, steps: calls(hello), before: func(p *played) {
				await(patience, func() bool { return strings.Contains(p.journal(), " ready\n") })
			}})
			first.g.stop()
			p := play(t, a, setup{after: first, steps: calls(hello)})
			p.point("again "+boot, p.echoed(0), "")
		}
	})
}

// Over stdio, an agent that leaves before its server is up finds its tools at the next start: sse-server has
// learned them meanwhile.
func TestSecondStartOverStdio(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		for _, boot := range []string{"2.5s", "8s", "20s"} {
			first := play(t, a, setup{over: stdio, server: []string{"--boot", boot}, steps: calls(hello)})
			first.measure("stdio "+boot, first.echoed(0))
			await(time.Minute, first.isRemembered)
			p := play(t, a, setup{over: stdio, after: first, steps: calls(hello)})
			p.point("stdio again "+boot, p.echoed(0), "")
		}
	})
}

// isRemembered reports whether what the server said is kept.
func (p *played) isRemembered() bool {
	files, _ := filepath.Glob(filepath.Join(p.state, "sse-server", "remembered", "*.json"))
	return len(files) > 0
}

// A project in a new folder has the tools of a server that is known from another one.
func TestNewFolder(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		first := play(t, a, setup{over: stdio, server: []string{"--boot", "8s"}, steps: calls(hello)})
		await(3*time.Minute, func() bool { return ssetest.HasAnyFolder(filepath.Join(first.state, "sse-server", "remembered")) })
		p := play(t, a, setup{over: stdio, after: first, folder: t.TempDir(), steps: calls(hello)})
		p.point("new folder", p.echoed(0), "")
	})
}

// Another agent has just taken the process that was ready, and the next one boots 8 s.
func TestSecondClient(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		p := play(t, a, setup{server: []string{"--boot", "8s"}, steps: calls(hello), before: func(p *played) {
			await(patience, func() bool { return strings.Contains(p.journal(), " ready\n") && p.isRemembered() })
			p.takeServer()
		}})
		p.point("second client", p.echoed(0), "")
	})
}

// A view has the tools of a server that is quick, of one that boots 8 s, and none of one that ends at once. An agent
// that comes first has the tools of the quick one all the same. When the slow one is known, each agent has its tools
// too, and calls them: when the gateway has asked it at the start, and in the moment of another start.
func TestViewOfServers(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		both := calls(hello, slowTool+` {"message":"hello"}`)
		cold := play(t, a, setup{view: true, steps: calls(hello)})
		cold.point("view cold", cold.echoed(0), "")
		first := play(t, a, setup{view: true, steps: both, before: func(p *played) {
			await(patience, func() bool { return strings.Contains(p.view.journal(), " tools/list\n") })
		}})
		first.point("view 8s", first.echoed(0) && first.echoed(1), "")
		first.g.stop()
		p := play(t, a, setup{after: first, steps: both})
		p.point("view again 8s", p.echoed(0) && p.echoed(1), "")
	})
}

// takeServer is another agent that calls a tool.
func (p *played) takeServer() {
	p.t.Helper()
	session := ""
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}},"clientInfo":{"name":"another","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"first"}}}`,
	} {
		r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.g.url("/mcp"), strings.NewReader(message))
		ssetest.Must(p.t, err)
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + token}}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		response, err := http.DefaultClient.Do(r)
		ssetest.Must(p.t, err)
		_, err = io.Copy(io.Discard, response.Body)
		ssetest.Must(p.t, errors.Join(err, response.Body.Close()))
		session = cmp.Or(response.Header.Get("Mcp-Session-Id"), session)
	}
}

func TestGatewayRestarts(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		for over, column := range map[transport]string{streamable: "restart /mcp", sse: "restart /sse"} {
			if !a.takes(over) {
				table.set(a.name, column, "–")
				continue
			}
			p := play(t, a, setup{over: over, steps: func(p *played) []step {
				steps := calls(hello, hello, hello, hello)(p)
				steps[1].before = p.g.restart
				steps[2].before = func() {
					await(5*time.Second, func() bool { return strings.Count(p.g.log.String(), `msg="connection opened"`) > 1 })
				}
				return steps
			}})
			lost := 1
			for lost < 4 && !p.echoed(lost) {
				lost++
			}
			words := ""
			if lost > 1 && lost < 4 {
				words = fmt.Sprintf("after %d lost", lost-1)
			}
			p.point(column, p.echoed(0) && lost < 4, words)
		}
	})
}

func TestServerDiesDuringACall(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		p := play(t, a, setup{steps: calls(hello, "die", hello)})
		_, told := p.m.result(1)
		p.point("server dies", p.echoed(0) && told && p.echoed(2), "")
	})
}

func TestLongCall(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		for column, progress := range map[string]bool{"long call": false, "with progress": true} {
			t.Run(column, func(t *testing.T) {
				t.Parallel()
				call := fmt.Sprintf(`wait {"seconds":%v,"progress":%v}`, long.Seconds(), progress)
				// The default ends calls after a minute without progress.
				p := play(t, a, setup{waits: true, flags: []string{"--request-timeout", "5m"}, limit: *long + 3*time.Minute, steps: calls(call)})
				switch done := p.got(0, "waited in full"); {
				case *long > time.Minute:
					p.point(column, done, "")
				case !done: // nothing is known to be lacking here
					t.Errorf("a call of %v failed\n%s", *long, p)
				}
			})
		}
	})
}

func TestTools(t *testing.T) {
	const shape = `{"at":{"x":1,"y":2},"size":"small"}`
	forEachAgent(t, func(t *testing.T, a agent) {
		last := fmt.Sprintf("tool_%d", manyTools-3)
		p := play(t, a, setup{server: []string{"--many"}, steps: calls(last+` {"message":"hello"}`, longName+` {"message":"hello"}`, "shapes "+shape)})
		p.point("80 tools", p.echoed(0), "")
		p.point("64 characters", p.echoed(1), "")
		p.point("$ref, anyOf", p.got(2, "small") && strings.Contains(p.journal(), "shapes "+shape), "")
	})
}

func TestResults(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		p := play(t, a, setup{steps: calls("image", "refuse", "structure", hello)})
		p.point("image", p.m.saw(pixel), "")
		p.point("isError", p.got(1, "refused by the server"), "")
		p.point("structured", p.got(2, "rain"), "")
	})
}

func TestBigResult(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		p := play(t, a, setup{limit: time.Minute, steps: calls("big", hello)})
		result, ok := p.m.result(0)
		words := ""
		if ok && !strings.Contains(result, bigEnd) {
			shown := strings.Count(result, strings.TrimSpace(bigLine)) * len(bigLine)
			words = fmt.Sprintf("%d kB of it", shown/1000)
		}
		p.point("1 MiB", ok && p.echoed(1), words)
	})
}

func TestNewTool(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		p := play(t, a, setup{steps: func(p *played) []step {
			steps := calls("grow", hello, hello, `grown {"message":"hello"}`)(p)
			steps[1].before = func() {
				await(5*time.Second, func() bool { return strings.Count(p.journal(), " tools/list\n") > 1 })
			}
			return steps
		}})
		p.point("new tool", p.echoed(3), "")
	})
}

var outcome = regexp.MustCompile(`"action":"(\w+)"`)

func TestElicitation(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		p := play(t, a, setup{steps: calls("ask", hello)})
		words := ""
		if did := outcome.FindStringSubmatch(p.journal()); did != nil {
			words = did[1] + "s"
		}
		_, ok := p.m.result(0)
		if ok && p.got(0, "nobody to ask") {
			words, ok = "–", true
		}
		p.point("elicitation", ok && p.echoed(1), words)
	})
}
