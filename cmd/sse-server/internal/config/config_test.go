package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

// command makes the options of the child process allowed.
func withCommand(args ...string) []string { return append(args, "--", "server") }

func TestValuesThatAreTaken(t *testing.T) {
	for _, tc := range []struct{ flag, given, want string }{
		{"addr", "127.0.0.1:0", "127.0.0.1:0"},
		{"addr", "[::1]:80", `"[::1]:80"`},
		{"addr", "localhost:65535", "localhost:65535"},
		{"addr", "127.3.2.1:1", "127.3.2.1:1"},
		{"log-level", "debug", "debug"},
		{"log-format", "json", "json"},
		{"event", "", `""`},
		{"event", "mcp-response", "mcp-response"},
		{"prefix", "/a/b", "/a/b"},
		{"heartbeat-interval", "1500ms", "1.5s"},
		{"heartbeat-interval", "0", "0"},
		{"heartbeat-interval", "0s", "0"},
		{"connection-timeout", "0", "0"},
		{"start-timeout", "1h", "1h"},
		{"start-timeout", "90m", "1h30m"},
		{"max-connections", "0", "0"},
		{"max-connections", "10_000", "10000"},
		{"connect-rate", "0", "0"},
		{"connect-rate", "0.5", "0.5"},
		{"connect-rate", "1e3", "1000"},
		{"outbox-bytes", "1KiB", "1KiB"},
		{"outbox-bytes", "1 GiB", "1GiB"},
		{"outbox-bytes", "1048577", "1048577"},
		{"outbox-bytes", "2097152", "2MiB"},
		{"capabilities", ` { "roots" : {} } `, `"{\"roots\":{}}"`},
		{"trusted-proxies", "10.0.0.0/8, ::1,", `[10.0.0.0/8, "::1/128"]`},
		{"allowed-hosts", "a.example,[::1]", `[a.example, "::1"]`},
		{"allowed-origins", "http://a:1,*", `[http://a:1, "*"]`},
		{"auto-initialize", "no", "false"},
		{"env", "A=b=c,d", `{A: "***"}`},
		{"env", "A: b=", `{"A: b": "***"}`},
	} {
		t.Run(tc.flag+"="+tc.given, func(t *testing.T) {
			l := mustLoad(t, nil, withCommand("--"+tc.flag+"="+tc.given)...)
			if got := settingOf(l, tc.flag); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for _, tc := range []struct{ flag, given, allowed string }{
		{"addr", "", "HOST:PORT"},
		{"addr", "8080", "HOST:PORT"},
		{"addr", "127.0.0.1:65536", "0 to 65535"},
		{"addr", "127.0.0.1:http", "0 to 65535"},
		{"addr", "http://127.0.0.1:1", "HOST:PORT"},
		{"admin-addr", "x", "HOST:PORT"},
		{"log-level", "INFO", "debug, info, warn, error"},
		{"log-format", "xml", "text, json"},
		{"event", "messages", "want one of message, mcp-response"},
		{"prefix", "mcp", "/mcp"},
		{"prefix", "/", "/mcp"},
		{"prefix", "/mcp/", "/mcp"},
		{"prefix", "/a/../b", "/mcp"},
		{"prefix", "/a b", "/mcp"},
		{"prefix", "/a\nb", "/mcp"},
		{"prefix", "/{id}", "/mcp"},
		{"prefix", "/a|b", "/mcp"},
		{"prefix", "/a//b", "/mcp"},
		{"prefix", "/a%20b", "/mcp"},
		{"heartbeat-interval", "15", "number with a unit"},
		{"heartbeat-interval", "1ms", "at least 100ms"},
		{"heartbeat-interval", "-1s", "0 for no heartbeats"},
		{"connection-timeout", "soon", "0 for never"},
		{"request-timeout", "0", "at least 1ms, such as 15s"},
		{"request-timeout", "1ns", "at least 1ms"},
		{"sessions", "per-client", "per-connection, shared"},
		{"sessions-size", "0", "from 1 to"},
		{"warm", "-1", "0 for none"},
		{"start-concurrency", "0", "from 1 to"},
		{"retry", "always", "safe, never"},
		{"hang-timeout", "-1s", "0 for never"},
		{"max-request-timeout", "0", "such as 15s"},
		{"max-waiting", "0", "from 1 to"},
		{"shutdown-timeout", "0s", "at least 1ms, such as 15s"},
		{"max-connections", "-1", "0 for unlimited"},
		{"max-connections", "1.5", "whole number"},
		{"max-connections", "100000001", "1 to 100000000"},
		{"max-connections", "99999999999999999999", "whole number"},
		{"gate-queue", "0", "from 1 to"},
		{"connect-rate", "NaN", "number a second"},
		{"connect-rate", "Inf", "number a second"},
		{"connect-rate", "-1", "0 for unlimited"},
		{"connect-burst", "0", "from 1 to"},
		{"outbox-bytes", "0", "1KiB to 1GiB"},
		{"outbox-bytes", "1MB", "4MiB, 512KiB or 1048576"},
		{"outbox-bytes", "1.5MiB", "1KiB to 1GiB"},
		{"outbox-bytes", "9223372036854775807GiB", "1KiB to 1GiB"},
		{"max-message-bytes", "2GiB", "1KiB to 1GiB"},
		{"capabilities", "[]", "JSON object"},
		{"capabilities", "{", "JSON object"},
		{"capabilities", "{}{}", "JSON object"},
		{"trusted-proxies", "10.0.0.0/40", "10.0.0.0/8"},
		{"trusted-proxies", "proxy.example", "10.0.0.0/8"},
		{"allowed-origins", "a.example", "https://app.example.com"},
		{"allowed-origins", "https://a.example/", "https://app.example.com"},
		{"allowed-origins", "https://*.example.com", "stands only for any origin"},
		{"request-timeout", "2562047h47m16s", "at most 8760h"},
		{"allowed-origins", "null", "https://app.example.com"},
		{"allowed-hosts", "a.example:80", "without port"},
		{"auto-initialize", "maybe", "true or false"},
		{"cors", "2", "true or false"},
		{"dir", "/does/not/exist", "directory that exists"},
	} {
		t.Run(tc.flag+"="+tc.given, func(t *testing.T) {
			_, faults := loadWith(t, nil, withCommand("--"+tc.flag+"="+tc.given)...)
			if len(faults) != 1 {
				t.Fatalf("got %d faults %q, want one", len(faults), faults)
			}
			if !strings.HasPrefix(faults[0], "--"+tc.flag) || !strings.Contains(faults[0], tc.given) && !strings.ContainsAny(tc.given, "\n") {
				t.Errorf("got %q, want the flag and the value %q", faults[0], tc.given)
			}
			if !strings.Contains(faults[0], tc.allowed) {
				t.Errorf("got %q, want %q in it", faults[0], tc.allowed)
			}
		})
	}
}

func TestFaultyEnvIsNotShown(t *testing.T) {
	_, faults := loadWith(t, nil, withCommand("--env", "s3cret")...)
	if len(faults) != 1 || strings.Contains(faults[0], "s3cret") || !strings.Contains(faults[0], "KEY=VALUE") {
		t.Errorf("got %q, want one fault that names KEY=VALUE and not the value", faults)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", "gate-queue: 0\nnonsense: 1\nlog-level: loud\n")
	_, faults := loadWith(t, map[string]string{"SSE_SERVER_CONNECT_RATE": "fast", "SSE_SERVER_CONFIG": path},
		"--adr", "1", "--addr", "nowhere", "--max-connections", "-1", "--no-announce=maybe", "--write-timeout",
		"--tls-cert", "c.pem", "stray", "args")
	for _, want := range []string{
		"unknown flag --adr, did you mean",
		`--addr "nowhere": want HOST:PORT`,
		`--max-connections "-1": want`,
		"--no-announce=maybe: takes no value",
		"--write-timeout",
		`--tls-cert "c.pem": needs --tls-key`,
		`unexpected argument "stray": the command to serve goes after --, as in: sse-server [flags] -- stray args`,
		path + `:1: gate-queue "0": want a whole number from 1`,
		path + `:2: unknown key "nonsense"`,
		path + `:3: log-level "loud": want one of debug`,
		`SSE_SERVER_CONNECT_RATE "fast": want`,
	} {
		// --write-timeout has taken --tls-cert for no value: both are named.
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("missing %q in\n%s", want, strings.Join(faults, "\n"))
		}
	}
	if len(faults) != 11 {
		t.Errorf("got %d faults, want 11:\n%s", len(faults), strings.Join(faults, "\n"))
	}
}

// TestFaultsHaveNoConsequences checks that an option that is wrong by itself, or
// misspelled, is not reported again for what follows from it.
func TestFaultsHaveNoConsequences(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		args          []string
		want          string
	}{
		{"a misspelled command in servers", "servers:\n  a: {comand: [x], env: {A: b}}\n", nil, `unknown key "servers.a.comand"`},
		{"a misspelled command", "comand: [x]\nenv: {A: b}\n", nil, `unknown key "comand"`},
		{"a command that is none", "command: x\nenv: {A: b}\n", nil, `command "x": want a list`},
		{"a URL without a value", "header: {A: b}\n", []string{"--url"}, "--url: needs a value"},
		{"a demo that is none", "servers: {a: {demo: maybe}}\n", nil, `servers.a.demo "maybe": want true or false`},
		{"a faulty time", "start-timeout: 2s\n", []string{"--initialization-timeout", "x"}, `--initialization-timeout "x": want a number`},
		{"a faulty time of all", "start-timeout: x\nservers: {a: {demo: true, initialization-timeout: 2m}}\n", nil, `start-timeout "x": want a number`},
		{"faulty sessions", "sessions-size: 2\n", []string{"--sessions", "x"}, `--sessions "x": want one of`},
		{"faulty origins", "cors: true\n", []string{"--allowed-origins", "x"}, `--allowed-origins "x": want`},
		{"a faulty key", "tls-cert: c.pem\n", []string{"--tls-key"}, "--tls-key: needs a value"},
		{"a faulty file of tokens", "addr: 0.0.0.0:1\n", []string{"--auth-tokens-file"}, "--auth-tokens-file: needs a value"},
		{"a faulty address", "insecure: false\n", []string{"--addr", "0.0.0.0"}, `--addr "0.0.0.0": want`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := clitest.WriteFile(t, "gw.yaml", tc.content)
			_, faults := loadWith(t, nil, append([]string{"--config", path}, tc.args...)...)
			if len(faults) != 1 || !strings.Contains(faults[0], tc.want) {
				t.Errorf("got %q, want only %q", faults, tc.want)
			}
		})
	}
}

func TestContradictions(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	for _, tc := range []struct {
		name string
		args []string
		want string // "" for none
	}{
		{"certificate without key", []string{"--tls-cert", "c.pem"}, `--tls-cert "c.pem": needs --tls-key`},
		{"key without certificate", []string{"--tls-key", "k.pem"}, `--tls-key "k.pem": needs --tls-cert`},
		{"TLS files that do not exist", []string{"--tls-cert", "c.pem", "--tls-key", "k.pem"}, `--tls-cert "c.pem" with --tls-key "k.pem": open c.pem`},
		{"demo and a command", []string{"--demo", "--", "x"}, `--demo and the command "x"`},
		{"an empty command", []string{"--", ""}, "the command: want a program, whose name is not empty"},
		{"child options without a child", []string{"--env", "A=1"}, "--env: has no effect on the demo server"},
		{"all addresses", []string{"--addr", ":8080"}, `--addr ":8080": other machines may reach it`},
		{"another name", []string{"--addr", "gw.example:8080"}, `--addr "gw.example:8080": other machines may reach it`},
		{"all addresses of IPv6", []string{"--addr", "[::]:8080"}, `--addr "[::]:8080": other machines may reach it`},
		{"all addresses, insecure", []string{"--addr", ":8080", "--insecure"}, ""},
		{"all addresses, tokens", []string{"--addr", "0.0.0.0:8080", "--auth-tokens-file", tokens}, ""},
		{"IPv4 loopback in IPv6", []string{"--addr", "[::ffff:127.0.0.1]:8080"}, ""},
		{"admin on all addresses", []string{"--admin-addr", "0.0.0.0:9090"}, `--admin-addr "0.0.0.0:9090": other machines may reach it`},
		{"admin on the main address", []string{"--admin-addr", "127.0.0.1:8080"}, `--admin-addr "127.0.0.1:8080": want another address`},
		{"two free ports", []string{"--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, ""},
		{"impatient server", []string{"--start-timeout", "2s"}, "--initialization-timeout 5s: must be at most --start-timeout (2s)"},
		{"one address above all", []string{"--max-connections", "5", "--max-connections-per-ip", "6"}, "--max-connections-per-ip 6: must be at most --max-connections (5)"},
		{"one address, all unlimited", []string{"--max-connections", "0", "--max-connections-per-ip", "6"}, ""},
		{"CORS for nobody", []string{"--cors"}, "--cors: has no effect without --allowed-origins"},
		{"CORS", []string{"--cors", "--allowed-origins", "*"}, ""},
		{"messages that fill the budget", []string{"--max-held-bytes", "8MiB", "--max-message-bytes", "3MiB"}, "--max-message-bytes 3MiB: must be at most a quarter of --max-held-bytes (8MiB)"},
		{"fewer sessions than warm servers", []string{"--warm", "5", "--max-sessions", "5"}, "--max-sessions 5: must be more than --warm (5)"},
		{"fewer sessions than are shared", []string{"--sessions", "shared", "--sessions-size", "3", "--max-sessions", "3"}, "--max-sessions 3: must be more than --sessions-size (3)"},
		{"an impatient maximum", []string{"--request-timeout", "2m", "--max-request-timeout", "1m"}, "--max-request-timeout 1m: must be at least --request-timeout (2m)"},
		{"a long request, the maximum left open", []string{"--request-timeout", "1h"}, ""},
		{"many shared sessions that are not shared", []string{"--sessions-size", "2"}, "--sessions-size 2: has no effect unless --sessions (per-connection) is shared"},
		{"many shared sessions", []string{"--sessions", "shared", "--sessions-size", "2", "--warm", "1"}, ""},
		{"sharing without a handshake", []string{"--sessions", "shared", "--no-auto-initialize"}, "--sessions shared: contradicts --auto-initialize (false): "},
		{"sharing with capabilities", []string{"--sessions", "shared", "--capabilities", `{"roots":{}}`}, "--capabilities: contradicts --sessions (shared): "},
		{"warm without a handshake", []string{"--warm", "2", "--no-auto-initialize"}, ""},
		{"warm and remote", []string{"--warm", "2", "--url", "https://a/mcp"}, "--warm 2: has no effect on a remote server"},
		{"warm, remote and shared", []string{"--warm", "2", "--url", "https://a/mcp", "--sessions", "shared"}, ""},
		{"capabilities of no handshake", []string{"--no-auto-initialize", "--capabilities", `{"roots":{}}`}, "--capabilities: has no effect with --auto-initialize (false): "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, faults := loadWith(t, nil, tc.args...)
			switch {
			case tc.want == "" && len(faults) > 0:
				t.Errorf("got %q, want none", faults)
			case tc.want != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0], tc.want)):
				t.Errorf("got %q, want %q", faults, tc.want)
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", "gate-queue: 7\nallowed-hosts: [file.example]\ncors: false\nannounce: false\n")
	env := map[string]string{
		"SSE_SERVER_CONFIG": path, "SSE_SERVER_GATE_QUEUE": "8", "SSE_SERVER_ALLOWED_HOSTS": "a.example,b.example",
		"SSE_SERVER_MAX_PENDING": "",
	}
	for _, tc := range []struct {
		name string
		env  map[string]string
		args []string
		flag string
		want string
		from string
	}{
		{"default", nil, nil, "gate-queue", "64", "--gate-queue"},
		{"file over default", nil, []string{"--config", path}, "gate-queue", "7", path + ":1: gate-queue"},
		{"file by short flag", nil, []string{"-c", path}, "gate-queue", "7", path + ":1: gate-queue"},
		{"variable over file", env, nil, "gate-queue", "8", "SSE_SERVER_GATE_QUEUE"},
		{"flag over variable", env, []string{"--gate-queue", "9"}, "gate-queue", "9", "--gate-queue"},
		{"last flag", env, []string{"--gate-queue", "9", "--gate-queue=10"}, "gate-queue", "10", "--gate-queue"},
		{"lists replace each other", env, nil, "allowed-hosts", "[a.example, b.example]", "SSE_SERVER_ALLOWED_HOSTS"},
		{"a repeated flag adds", env, []string{"--allowed-hosts", "c", "--allowed-hosts", "d,e"}, "allowed-hosts", "[c, d, e]", "--allowed-hosts"},
		{"false in the file over a default of true", env, nil, "announce", "false", path + ":4: announce"},
		{"flag over false in the file", env, []string{"--announce"}, "announce", "true", "--announce"},
		{"negated flag", nil, []string{"--no-announce"}, "announce", "false", "--announce"},
		{"empty variable", env, nil, "max-pending", "4096", "--max-pending"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := mustLoad(t, tc.env, tc.args...)
			if got := settingOf(l, tc.flag); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if got := l.Name(tc.flag); got != tc.from {
				t.Errorf("origin: got %s, want %s", got, tc.from)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", "command: [npx, -y, 1.10, \"a b\", ~]\nenv: {VERSION: 1.10, TOKEN: 'a=b,c', EMPTY: }\n")
	l := mustLoad(t, nil, "-c", path)
	if got, want := l.command, []string{"npx", "-y", "1.10", "a b", ""}; !slices.Equal(got, want) {
		t.Errorf("command of the file: got %q, want %q", got, want)
	}
	if got, want := environ(l), []string{"VERSION=1.10", "TOKEN=a=b,c", "EMPTY="}; !slices.Equal(got, want) {
		t.Errorf("env of the file: got %q, want %q", got, want)
	}
	l = mustLoad(t, map[string]string{"SSE_SERVER_ENV": "X=1,2\nY=3"}, "-c", path, "--", "other", "--addr", "--", "-x")
	if got, want := l.command, []string{"other", "--addr", "--", "-x"}; !slices.Equal(got, want) {
		t.Errorf("command of the line: got %q, want %q", got, want)
	}
	if got, want := environ(l), []string{"X=1,2", "Y=3"}; !slices.Equal(got, want) {
		t.Errorf("env of the variable: got %q, want %q", got, want)
	}
	l = mustLoad(t, nil, "--env", "A=1,2", "--env=B=3", "--", "x")
	if got, want := environ(l), []string{"A=1,2", "B=3"}; !slices.Equal(got, want) {
		t.Errorf("env of the flags: got %q, want %q", got, want)
	}
	if l = mustLoad(t, nil, "--"); len(l.command) != 0 {
		t.Errorf("nothing after --: got %q, want the demo server", l.command)
	}
}

func TestNamesOfOtherServersFlags(t *testing.T) {
	for arg, want := range map[string]string{
		"--port": "--addr HOST:PORT", "--port=1": "--addr HOST:PORT", "-p": "--addr HOST:PORT", "--host": "--addr HOST:PORT",
		"--cert": "--tls-cert FILE", "--key": "--tls-key FILE", "--add": "--addr",
	} {
		_, faults := loadWith(t, nil, arg, "9999")
		name, _, _ := strings.Cut(arg, "=")
		if got, want := strings.Join(faults, "\n"), "unknown flag "+name+", did you mean \""+want+"\"?"; !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", arg, got, want)
		}
	}
}
