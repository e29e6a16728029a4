package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

// The server that stdio --connect starts gets the options as they were given, and no address.
func TestArgumentsOfTheSharedServer(t *testing.T) {
	env := map[string]string{"HOME": "/home/ada"}
	for given, want := range map[string]string{
		"stdio --connect http://127.0.0.1:8080/mcp -- npx -y pkg":                                "--exit-unused=10m --no-start-check -- npx -y pkg",
		"stdio --connect=http://localhost:8080/a/mcp --warm 2 --no-remember --no-page -- x":      "--warm=2 --no-remember --no-page --exit-unused=10m --no-start-check --prefix=/a -- x",
		"--log-level debug stdio --connect http://[::1]:80/mcp --env A=1 --env B=2,3 -- x stdio": "--log-level=debug --env=A=1 --env=B=2,3 --exit-unused=10m --no-start-check -- x stdio",
		"stdio --connect http://127.0.0.1:8080/mcp --include a* --only read-only --warm=1 -- x":  "--warm=1 --exit-unused=10m --no-start-check -- x",             // the selection is of this client alone
		"stdio --connect http://127.0.0.1:8080/mcp --no-login --url http://127.0.0.1:1/":         "--url=http://127.0.0.1:1/ --exit-unused=10m --no-start-check", // so is its browser
		"stdio --connect http://127.0.0.1:8080/mcp --exit-unused 5m --start-check -- x":          "--exit-unused=5m --start-check -- x",
	} {
		c := mustLoad(t, env, strings.Fields(given)...)
		if got := strings.Join(c.DaemonArgs, " "); got != want {
			t.Errorf("%s: the server gets %s, want %s", given, got, want)
		}
		again := mustLoad(t, env, c.DaemonArgs...)
		if again.Does != "serve" || !slices.Equal(again.Command, c.Command) {
			t.Errorf("%s: the server reads %s, %q", given, again.Does, again.Command)
		}
	}
}

// Words of other programs mean one of ours.
func TestStartMeansServe(t *testing.T) {
	for _, word := range []string{"start", "run", "serve"} {
		if c := mustLoad(t, nil, word, "--warm", "3", "--", "x"); c.Does != "serve" || *c.Warm != 3 {
			t.Errorf("%s: got %s", word, c.Does)
		}
	}
}

// Without a URL the name is that of the file, whatever the folder, and what clients get is what init has made for them.
func TestConnectToTheServerOfAFile(t *testing.T) {
	env := map[string]string{"HOME": "/home/ada"}
	const two = "servers: {a: {command: [x]}, b: {command: [y]}}\n"
	names := map[string]bool{}
	for file, path := range map[string]string{
		"servers: {a: {command: [x]}}\n":                                               "/a/mcp",
		two + "views: {all: {servers: {a: {}, b: {}}}}\n":                              "/all/mcp",
		two + "views: {all: {servers: {a: {}, b: {}}}, gateway: {servers: {a: {}}}}\n": "/gateway/mcp",
	} {
		file = clitest.WriteFile(t, "gw.yaml", file)
		c := mustLoad(t, env, "stdio", "--connect", "--config", file, "--log-level", "debug")
		if c.Connect.Path != path || !c.ConnectsToFile() {
			t.Errorf("got %s, want %s", c.Connect, path)
		}
		want := "--log-level=debug --config=" + file + " --of-file --watch --exit-unused=10m --no-start-check"
		if got := strings.Join(c.DaemonArgs, " "); got != want {
			t.Errorf("the server gets %s, want %s", got, want)
		}
		again := mustLoad(t, env, c.DaemonArgs...)
		if again.Does != "serve" || !again.IsOfFile() || again.SocketName() != c.Connect.Port() {
			t.Errorf("the server reads %q, %s", again.Does, again.SocketName())
		}
		t.Chdir(filepath.Dir(file))
		if other := mustLoad(t, env, "stdio", "--config", "gw.yaml", "--connect"); other.Connect.String() != c.Connect.String() {
			t.Errorf("by a relative path: got %s, want %s", other.Connect, c.Connect)
		}
		names[c.Connect.Port()] = true
	}
	if len(names) != 3 {
		t.Errorf("three files have the names %v", names)
	}
	for args, want := range map[string]string{
		"stdio --connect":                         "--connect: without a URL it means the sse-server of a file: want --config FILE too",
		"stdio --connect -- x":                    "want --config FILE too",
		"stdio --connect --config ":               "and it has a, b: name the view that clients get gateway",
		"stdio --connect --auth-tokens-file t -c": "not with --auth-tokens-file",
	} {
		if strings.HasSuffix(args, "-c") || strings.HasSuffix(args, " ") {
			content := map[bool]string{true: two, false: "servers: {a: {command: [x]}}\n"}[strings.HasSuffix(args, " ")]
			args += " " + clitest.WriteFile(t, "other.yaml", content)
		}
		wantRefusal(t, env, want, strings.Fields(args)...)
	}
}

func TestConnectIsChecked(t *testing.T) {
	env := map[string]string{"HOME": "/home/ada"}
	for args, want := range map[string]string{
		"stdio --connect http://192.0.2.1:80/mcp -- x":                           "want a URL of this machine as the name",
		"stdio --connect https://127.0.0.1:80/mcp -- x":                          "want a URL",
		"stdio --connect http://127.0.0.1/mcp -- x":                              "want a URL",
		"stdio --connect http://127.0.0.1:80/sse -- x":                           "want a URL",
		"stdio --connect http://127.0.0.1:80/mcp --addr 127.0.0.1:81 -- x":       "not with --addr",
		"stdio --connect http://127.0.0.1:80/mcp --auth-tokens-file tokens -- x": "not with --auth-tokens-file",
	} {
		if _, err := Load(strings.Fields(args), clitest.Environment(env), new(Config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
	if _, err := Load([]string{"stdio", "--connect", "http://127.0.0.1:80/mcp", "--", "x"}, clitest.Environment(nil), new(Config)); err == nil {
		t.Error("without a state directory: no error")
	}
}
