package config

import (
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
		"stdio --connect http://127.0.0.1:8080/mcp --include a* --only read-only --warm=1 -- x":  "--warm=1 --exit-unused=10m --no-start-check -- x", // the selection is of this client alone
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
