package config

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// cmpUpstream returns what a configuration serves, in place of the demo a command.
func cmpUpstream(s *Server) upstream.Upstream {
	if up := s.Upstream(); up != nil {
		return up
	}
	return stdio.Command{Path: "x"}
}

// The child gets the variables of the env-file, and references find them.
func TestEnvFile(t *testing.T) {
	file := clitest.WriteFile(t, ".env", "# keys\nexport A=1\nB='two words'\nC=\"x\"\n")
	c := mustLoad(t, nil, "--env-file", file, "--env", "A=2", "--env-allow", "NONE", "--", "x")
	if got := c.Upstream().(stdio.Command).Env; !slices.Equal(got, []string{"A=1", "B=two words", "C=x", "A=2"}) {
		t.Errorf("the child gets %q", got)
	}
	if !slices.Contains(c.Files(), file) {
		t.Error("the file is not watched")
	}
	c = mustLoad(t, map[string]string{"C": "of the environment"}, "--env-file", file, "--url", "https://a/${C}", "--header", "K: ${B}")
	if remote := c.Upstream().(remote.URL); remote.Address != "https://a/x" || remote.Header.Get("K") != "two words" {
		t.Errorf("got %s %v", remote.Address, remote.Header)
	}
	wantRefusal(t, nil, "--env-file: there is no file /does/not/exist", "--env-file", "/does/not/exist", "--", "x")
	wantRefusal(t, nil, "want NAME=VALUE", "--env-file", clitest.WriteFile(t, "bad", "A "+secret+"\n"), "--", "x")
}

// A first word that a shell would take, or that is something else than a program, is told from a program
// that is missing.
func TestFirstWordThatIsNotAProgram(t *testing.T) {
	for word, test := range map[string]struct{ onLine, inFile string }{
		"API_KEY=" + secret:         {"API_KEY=… is not a program: set the variable with --env API_KEY=VALUE", "API_KEY=… is not a program: set the variable with env:"},
		"cd":                        {"cd is a command of shells, not a program: set the directory with --dir DIR", "cd is a command of shells, not a program: set the directory with dir:"},
		"export":                    {"export is a command of shells, not a program: write sh -c and the whole command as one word, or a script", ""},
		"~/server":                  {"only shells replace ~ by the home directory: write the whole path of the program", ""},
		"http://u:" + secret + "@a": {"an address is not a program: serve it with --url URL", "an address is not a program: serve it with url:"},
		`C:\tools\server.exe`:       {"it is a path of Windows, which this machine does not have: write the path that the program has here", ""},
		"throw.js":                  {"a script comes after its interpreter, as in: sse-server -- node throw.js", "a script comes after its interpreter, as in: command: [node, throw.js]"},
		clitest.WriteFile(t, "server.py", "pass\n"): {"a script comes after its interpreter, as in: sse-server -- python3 /", "a script comes after its interpreter, as in: command: [python3, /"},
		"./no/such.py":    {`start "./no/such.py": there is no such file`, ""},
		"no-such-program": {`start "no-such-program": there is no such program in PATH: install it or give its path`, ""},
	} {
		if runtime.GOOS == "windows" && strings.HasPrefix(word, "C:") {
			continue
		}
		file := clitest.WriteFile(t, "gw.yaml", fmt.Sprintf("command: [%q]\n", word))
		for place, c := range map[string]*Config{"the command: " + test.onLine: mustLoad(t, nil, "--", word),
			file + ":1:10: command: " + cmp.Or(test.inFile, test.onLine): mustLoad(t, nil, "-c", file)} {
			if err := c.CheckCommand(); err == nil || !strings.HasPrefix(err.Error(), place) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: got %v, want %s", word, err, place)
			}
		}
	}
}

func TestRemoteServer(t *testing.T) {
	token := clitest.WriteFile(t, "token", "  "+secret+"\n")
	vars := map[string]string{"TOKEN": secret, "HOST": "mcp.example", "LINE": "a\n", "SSE_SERVER_HEADER": "X-A: 1\nX-B:  ${HOST}: 2 "}
	file := clitest.WriteFile(t, "gw.yaml", "url: https://${HOST}/mcp?key=${TOKEN}\nheader: {Authorization: \"Bearer ${TOKEN}\", x-number: 1.10}\n")
	for name, tc := range map[string]struct {
		vars          map[string]string
		args          []string
		address, want string // want: the headers in the form of HTTP, sorted
	}{
		"flags": {vars, []string{"--url", "http://a/sse", "--header", "Authorization: Bearer ${TOKEN}", "--header", "X-B: 3,4"},
			"http://a/sse", "Authorization: Bearer " + secret + "\r\nX-B: 3,4\r\n"},
		"variable": {vars, []string{"--url", "http://a/sse"}, "http://a/sse", "X-A: 1\r\nX-B: mcp.example: 2\r\n"},
		"file": {map[string]string{"TOKEN": secret, "HOST": "mcp.example"}, []string{"-c", file},
			"https://mcp.example/mcp?key=" + secret, "Authorization: Bearer " + secret + "\r\nX-Number: 1.10\r\n"},
		"secret file":  {vars, []string{"--url", "https://a", "--header", "Authorization: Bearer ${file:" + token + "}"}, "https://a", "Authorization: Bearer " + secret + "\r\n"},
		"a lone $":     {vars, []string{"--url", "https://a", "--header", "A: $TOKEN$ {TOKEN}"}, "https://a", "A: $TOKEN$ {TOKEN}\r\n"},
		"newlines":     {vars, []string{"--url", "https://${LINE}", "--header", "A: b ${LINE}"}, "https://a", "A: b a\r\n"},
		"every header": {vars, []string{"--url", "https://a", "--header", "A:"}, "https://a", "A: \r\n"},
	} {
		c := mustLoad(t, tc.vars, tc.args...)
		var got bytes.Buffer
		ssetest.Must(t, c.remote.Header.Write(&got))
		if c.remote.Address != tc.address || got.String() != tc.want {
			t.Errorf("%s: got %s with\n%q, want %s with\n%q", name, c.remote.Address, got.String(), tc.address, tc.want)
		}
		if strings.Contains(strings.Join(c.Warnings, "\n"), secret) {
			t.Errorf("%s: the secret is shown", name)
		}
	}
}

func TestWarnings(t *testing.T) {
	open := clitest.WriteFile(t, "token", secret)
	ssetest.Must(t, os.Chmod(open, 0o646))
	short := clitest.WriteFile(t, "tokens", "short\n")
	for _, tc := range []struct {
		args []string
		want string // of the warnings
	}{
		{[]string{"--url", "http://a/mcp"}, ""},
		{[]string{"--url", "http://a/mcp", "--header", "A: " + secret}, "--url http://a/mcp: the headers go over the network in plain text"},
		{[]string{"--url", "https://a/mcp", "--header", "A: " + secret}, ""},
		{[]string{"--url", "http://127.0.0.1:1/mcp", "--header", "A: " + secret}, ""},
		{[]string{"--url", "https://a", "--header", "A: ${file:" + open + "}"}, open + " can be read or changed by other users of this machine: run chmod 600 " + open},
		{[]string{"--env", "A=${HOME}", "--", "x"}, "--env: ${…} is replaced only in a file, and in url and header, so the process gets A as written; leave out what it has from sse-server"},
		{[]string{"--env", "A=$HOME", "--", "sh", "-c", "echo ${A}"}, ""},
		{[]string{"--auth-tokens-file", short}, short + ", line 1: a token of under 16 characters can be guessed"},
		{[]string{"--insecure", "--addr", ":1"}, "--addr :1 without authentication: everyone who reaches it can run the tools of the server\n--addr :1: browsers on other machines get no page, because there is no authentication: auth-tokens-file, oauth or page gives it to them"},
		{[]string{"--insecure", "--addr", ":1", "--no-page"}, "--addr :1 without authentication: everyone who reaches it can run the tools of the server"},
		{[]string{"--insecure", "--admin-addr", ":1"}, "--admin-addr :1 without authentication: everyone who reaches it can read /metrics, /connections and /status, and reload the configuration"},
	} {
		ssetest.Want(t, "warnings of "+strings.Join(tc.args, " "), strings.Join(mustLoad(t, nil, tc.args...).Warnings, "\n"), tc.want)
	}
}

// A token of one server is none of another server's business.
func TestChildrenDoNotGetTheSecretsOfRemoteServers(t *testing.T) {
	for name, value := range map[string]string{"T_TOKEN": "swordfish", "T_PLAIN": "plain", "OTEL_EXPORTER_OTLP_ENDPOINT": "https://otel.example", "SSE_SERVER_HEADER": "X-Key: swordfish", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=swordfish", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=swordfish", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://user:swordfish@otel.example"} {
		t.Setenv(name, value)
	}
	path := clitest.WriteFile(t, "gw.yaml", `servers:
  child: {command: [echo]}
  listed: {command: [echo], env-allow: [PATH, T_TOKEN], env: {OWN: "1"}}
  remote: {url: "https://example.com/mcp", header: {Authorization: "Bearer ${T_TOKEN}"}}
`)
	c := mustLoad(t, map[string]string{"T_TOKEN": "swordfish"}, "--config", path)
	env := func(i int) []string { return c.Servers[i].Upstream().(stdio.Command).Env }
	if got := env(0); slices.ContainsFunc(got, func(v string) bool { return strings.Contains(v, "swordfish") }) || !slices.Contains(got, "T_PLAIN=plain") || !slices.Contains(got, "OTEL_EXPORTER_OTLP_ENDPOINT=https://otel.example") {
		t.Errorf("the child gets %q", got)
	}
	if got := env(1); len(got) != 3 || !slices.Contains(got, "T_TOKEN=swordfish") || !slices.Contains(got, "OWN=1") {
		t.Errorf("the child with a list gets %q", got)
	}
}

// The options of sse-server are not for one that a server starts, unless they are named. The variables that
// Kubernetes sets for a service of this name are none of them.
func TestChildrenDoNotGetTheOptionsOfSSEServer(t *testing.T) {
	env := map[string]string{"SSE_SERVER_LOG_LEVEL": "debug", "SSE_SERVER_ADDR": "127.0.0.1:1",
		"SSE_SERVER_CONNECT": "http://127.0.0.1:1/mcp", "SSE_SERVER_ORIGIN": "https://a.example", "SSE_SERVER_SERVICE_HOST": "10.0.0.1"}
	for name, value := range env {
		t.Setenv(name, value)
	}
	for given, want := range map[string]string{
		"-- x":                                 "SSE_SERVER_SERVICE_HOST=10.0.0.1",
		"--env-allow SSE_SERVER_ADDR -- x":     "SSE_SERVER_ADDR=127.0.0.1:1",
		"--env SSE_SERVER_LOG_LEVEL=info -- x": "SSE_SERVER_LOG_LEVEL=info SSE_SERVER_SERVICE_HOST=10.0.0.1",
	} {
		var got []string
		for _, variable := range mustLoad(t, env, strings.Fields(given)...).child().Env {
			if strings.HasPrefix(variable, "SSE_SERVER_") {
				got = append(got, variable)
			}
		}
		slices.Sort(got)
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got %q, want %q", given, got, want)
		}
	}
}

// These variables of a command count as given to it: those of the options, and for stdio all that an editor may
// have set. Variables with which terminals and editors tell of themselves are inherited, unless an option gives them.
func TestVariablesThatAreGiven(t *testing.T) {
	t.Setenv("SSH_HOST", "prod")
	t.Setenv("LANG", "C")
	t.Setenv("TERM", "xterm")
	t.Setenv("TERM_PROGRAM", "vscode")
	for command, want := range map[string]map[string]bool{
		"serve": {"SSH_HOST": true, "LANG": true, "TERM": true, "TERM_PROGRAM": false, "TENANT": false},
		"stdio": {"SSH_HOST": false, "LANG": false, "TERM": true, "TERM_PROGRAM": false, "TENANT": false},
	} {
		c := mustLoad(t, nil, command, "--env", "TERM_PROGRAM=x", "--env", "TENANT=a", "--", "server")
		child := c.Each()[0].Upstream().(stdio.Command)
		for name, inherited := range want {
			if got := slices.Contains(child.Inherited, name); got != inherited {
				t.Errorf("%s: %s is inherited: got %v, want %v", command, name, got, inherited)
			}
		}
	}
}

// A variable of the env-file counts as given, also if sse-server has inherited it too, with the same value or another.
func TestVariableOfTheEnvFileIsGiven(t *testing.T) {
	t.Setenv("SAME", "1")
	t.Setenv("TENANT", "of the environment")
	t.Setenv("OTHER", "1")
	file := clitest.WriteFile(t, ".env", "SAME=1\nTENANT=of the file\n")
	child := mustLoad(t, nil, "--env-file", file, "--", "server").Each()[0].Upstream().(stdio.Command)
	for name, inherited := range map[string]bool{"SAME": false, "TENANT": false, "OTHER": true} {
		if got := slices.Contains(child.Inherited, name); got != inherited {
			t.Errorf("%s is inherited: got %v, want %v", name, got, inherited)
		}
	}
}
