package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

func TestServersOfTheFile(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", `
request-timeout: 2m
gate-queue: 7
prefix: /mcp
env: {A: "1"}
servers:
  docs:
    command: [npx, -y, docs]
    gate-queue: 9
    env: {B: "2"}
  remote:
    url: https://a/mcp
    header: {Authorization: "Bearer ${TOKEN}"}
    request-timeout: 20m
  0_a-b: {demo: true, sessions: shared, sessions-size: 2}
`)
	l := mustLoad(t, map[string]string{"TOKEN": secret, "SSE_SERVER_WARM": "3"}, "-c", path, "--max-pending", "5")
	if len(l.Servers) != 3 {
		t.Fatalf("got %d servers, want 3", len(l.Servers))
	}
	docs, remote, demo := l.Servers[0], l.Servers[1], l.Servers[2]
	for i, want := range []struct {
		s      *Config
		server string
		kind   Kind
		path   string
	}{
		{docs, "docs", Child, "/mcp/docs"}, {remote, "remote", Remote, "/mcp/remote"}, {demo, "0_a-b", Demo, "/mcp/0_a-b"},
	} {
		o := want.s.Options
		if o.Name != want.server || o.Prefix != want.path || want.s.Kind() != want.kind {
			t.Errorf("server %d: got %s at %s of kind %d, want %+v", i, o.Name, o.Prefix, want.s.Kind(), want)
		}
		warm := 3
		if want.kind == Remote { // there is nothing to keep warm for it
			warm = 0
		}
		if o.Warm != warm || o.MaxPending != 5 {
			t.Errorf("%s: got warm %d and max-pending %d, want those of the variable and the flag", want.server, o.Warm, o.MaxPending)
		}
	}
	if got := [3]int{docs.Options.GateQueue, remote.Options.GateQueue, demo.Options.GateQueue}; got != [3]int{9, 7, 7} {
		t.Errorf("gate-queue: got %v, want the own one of the first", got)
	}
	if got := environ(docs); !slices.Equal(got, []string{"B=2"}) {
		t.Errorf("env: got %q, want its own in the place of that of all", got)
	}
	if docs.Options.RequestTimeout != 2*time.Minute || remote.Options.RequestTimeout != 20*time.Minute || remote.Options.MaxRequestTimeout != 20*time.Minute {
		t.Errorf("times: got %s, %s and %s", docs.Options.RequestTimeout, remote.Options.RequestTimeout, remote.Options.MaxRequestTimeout)
	}
	if got := remote.remote.Header.Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("header: got %q", got)
	}
	if demo.Options.SessionsSize != 2 || docs.Options.SessionsSize != 1 || l.Options.SessionsSize != 1 {
		t.Error("sessions-size of one server is that of another")
	}
}

func TestServersThatAreRefused(t *testing.T) {
	const demo = "servers: {a: {demo: true}}\n"
	for name, tc := range map[string]struct {
		content string
		args    []string
		want    []string // of each fault; after the path, or whole
	}{
		"nothing":             {"servers:\n", nil, nil},
		"none":                {"servers: {}\n", nil, []string{":1: servers: want a mapping of names to options"}},
		"a list":              {"servers: [a]\n", nil, []string{":1: servers: want a mapping of names to options"}},
		"a text":              {"servers:\n  a: npx\n", nil, []string{":2: servers.a: want a mapping of option names"}},
		"an empty one":        {"servers:\n  a:\n", nil, []string{":2: servers.a: want what to serve: command, url or demo: true"}},
		"an empty URL":        {"servers: {a: {url: \"\"}}\n", nil, []string{":1: servers.a: want what to serve"}},
		"no demo":             {"servers: {a: {demo: false}}\n", nil, []string{":1: servers.a: want what to serve"}},
		"the same name twice": {"servers:\n  a: {demo: true}\n  a: {demo: true}\n", nil, []string{":3:3: mapping key"}},
		"names": {"servers:\n  A: {demo: true}\n  -a: {demo: true}\n  a.b: {demo: true}\n  " + strings.Repeat("a", 65) + ": {demo: true}\n", nil, []string{
			":2: servers.A: must be at most 64 characters", ":3: servers.-a: must be", ":4: servers.a.b: must be", ":5: servers.aaa"}},
		"names of routes": {"servers:\n  sse: {demo: true}\n  healthz: {demo: true}\n  readyz: {demo: true}\n  metrics: {demo: true}\n  connections: {demo: true}\n", nil, []string{
			":2: servers.sse: want another name", ":3: servers.healthz", ":4: servers.readyz", ":5: servers.metrics", ":6: servers.connections"}},
		"unknown keys": {"servers:\n  a:\n    demo: true\n    gateQueue: 1\n    nope: 1\n    servers: {}\n", nil, []string{
			`:4: unknown key "servers.a.gateQueue", did you mean "gate-queue"?`, `:5: unknown key "servers.a.nope"`, `:6: unknown key "servers.a.servers"`}},
		"arguments by themselves": {"servers:\n  a:\n    command: [npx]\n    args: [-y, server]\n", nil, []string{
			`:4: unknown key "servers.a.args": put the arguments into command, such as [npx, -y, server]`}},
		"options of all": {"servers:\n  a:\n    demo: true\n    addr: 127.0.0.1:1\n    prefix: /x\n    insecure: true\n", nil, []string{
			":4: servers.a.addr: want it at the top level", ":5: servers.a.prefix: want it", ":6: servers.a.insecure: want it"}},
		"values": {"servers:\n  a:\n    command: npx\n    gate-queue: 0\n  b:\n    url: [x]\n    demo: true\n", nil, []string{
			`:3: servers.a.command "npx": want a list`, `:4: servers.a.gate-queue "0": want a whole number`, `:6: servers.b.url "[\"x\"]": want one value`}},
		"two things to serve": {"servers:\n  a: {demo: true, url: \"https://a\"}\n  b: {command: [x], url: \"https://a\"}\n", nil, []string{
			":2: servers.a.url and ", ":3: servers.b.url and "}},
		"options of another kind": {"servers:\n  a: {demo: true, env: {A: b}}\n  b: {url: \"https://b\", dir: /}\n  c: {command: [x], header: {A: b}}\n", nil, []string{
			":2: servers.a.env: has no effect on the demo", `:3: servers.b.dir "/": has no effect on a remote`, ":4: servers.c.header: has no effect without --url"}},
		"a limit of all is told once": {"gate-queue: 0\nservers:\n  a: {demo: true}\n  b: {demo: true}\n", nil, []string{":1: gate-queue"}},
		"a contradiction of all is told once": {"start-timeout: 2s\nservers:\n  a: {demo: true}\n  b: {demo: true}\n", nil, []string{
			"--initialization-timeout 5s: must be at most "}},
		"a contradiction with what all have": {"request-timeout: 1h\nmax-request-timeout: 2h\nservers:\n  a: {demo: true}\n  b: {demo: true, request-timeout: 3h}\n", nil, []string{
			":2: max-request-timeout 2h: must be at least "}},
		"sharing of one alone": {"sessions-size: 4\nservers:\n  a: {demo: true}\n  b: {demo: true, sessions: shared}\n  c: {demo: true, sessions-size: 2}\n", nil, []string{
			":5: servers.c.sessions-size 2: has no effect unless"}},
		"a command of all":        {"command: [x]\n" + demo, nil, []string{`:1: command "x": want it in an entry of servers`}},
		"a command":               {demo, []string{"--", "x"}, []string{`the command "x": want it in an entry of servers`}},
		"a URL":                   {demo, []string{"--url", "https://a"}, []string{"--url: want it in an entry of servers"}},
		"headers of all":          {"header: {A: b}\n" + demo, nil, []string{":1: header: want it in an entry of servers"}},
		"forwarded headers":       {"forward-header: [A]\n" + demo, nil, []string{":1: forward-header: want it in an entry of servers"}},
		"the demo":                {demo, []string{"--demo"}, []string{"--demo: want it in an entry of servers"}},
		"env, as a default, fits": {"env: {A: b}\ndir: /\n" + demo, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := clitest.WriteFile(t, "gw.yaml", tc.content)
			_, faults := loadWith(t, nil, append([]string{"--config", path}, tc.args...)...)
			if len(faults) != len(tc.want) {
				t.Fatalf("got\n%s\nwant %d faults", strings.Join(faults, "\n"), len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(strings.TrimPrefix(faults[i], path), want) {
					t.Errorf("got %q, want it to start with %q", faults[i], want)
				}
			}
		})
	}
}

// TestEffectiveSettingsOfServers feeds what --check-config prints back in.
func TestEffectiveSettingsOfServers(t *testing.T) {
	first := mustLoad(t, nil, "--max-pending", "5", "--prefix", "/p", "-c", clitest.WriteFile(t, "gw.yaml", `
gate-queue: 7
servers:
  b: {command: [x, "a b"], env: {K: `+secret+`}, warm: 2}
  a: {url: "https://a/mcp", header: {K: `+secret+`}}
`))
	text := first.Effective()
	for _, want := range []string{
		"\nmax-pending: 5  # --max-pending\n", "\nservers:\n  b:\n    command: [x, a b]\n    # env: {K: \"***\"}  # ",
		"    warm: 2  # ", "  a:\n    url: https://a/mcp  # ", "    # header: {K: \"***\"}  # ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, secret) {
		t.Errorf("the secret is in\n%s", text)
	}
	second := mustLoad(t, nil, "--config", clitest.WriteFile(t, "gw.yaml", text))
	for i, s := range second.Servers {
		got, want := s.Options, first.Servers[i].Options
		if got.Name != want.Name || got.Warm != want.Warm || got.MaxPending != want.MaxPending || got.GateQueue != want.GateQueue || got.Prefix != want.Prefix {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
}
