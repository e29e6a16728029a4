package config

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"

	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestRemoteServer(t *testing.T) {
	token := clitest.WriteFile(t, "token", "  "+secret+"\n")
	vars := map[string]string{"TOKEN": secret, "HOST": "mcp.example", "LINE": "a\n", "SSE_SERVER_HEADER": "X-A: 1\nX-B:  ${HOST}: 2 "}
	file := clitest.WriteFile(t, "gw.yaml", "url: https://${HOST}/mcp?key=${TOKEN}\nheader: {Authorization: \"Bearer ${TOKEN}\", x-number: 1.10}\n")
	for name, tc := range map[string]struct {
		args          []string
		address, want string // want: the headers in the form of HTTP, sorted
	}{
		"flags": {[]string{"--url", "http://a/sse", "--header", "Authorization: Bearer ${TOKEN}", "--header=x-b:2", "--header", "X-B: 3,4"},
			"http://a/sse", "Authorization: Bearer " + secret + "\r\nX-B: 2\r\nX-B: 3,4\r\n"},
		"variable":     {[]string{"--url", "http://a/sse"}, "http://a/sse", "X-A: 1\r\nX-B: mcp.example: 2\r\n"},
		"file":         {[]string{"-c", file, "--header", "X-A: 1"}, "https://mcp.example/mcp?key=" + secret, "X-A: 1\r\n"},
		"token file":   {[]string{"--url", "https://a", "--bearer-token-file", token, "--header=A:b"}, "https://a", "A: b\r\nAuthorization: Bearer " + secret + "\r\n"},
		"a lone $":     {[]string{"--url", "https://a", "--header", "A: $TOKEN$ {TOKEN}"}, "https://a", "A: $TOKEN$ {TOKEN}\r\n"},
		"newlines":     {[]string{"--url", "https://${LINE}", "--header", "A: b ${LINE}"}, "https://a", "A: b a\r\n"},
		"every header": {[]string{"--url", "https://a", "--header", "A:"}, "https://a", "A: \r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := mustLoad(t, vars, tc.args...)
			var got bytes.Buffer
			if err := l.remote.Header.Write(&got); err != nil {
				t.Fatal(err)
			}
			if l.remote.Address != tc.address || got.String() != tc.want {
				t.Errorf("got %s with\n%q, want %s with\n%q", l.remote.Address, got.String(), tc.address, tc.want)
			}
			if text := l.Effective(); strings.Contains(text, secret) {
				t.Errorf("the effective settings show the secret:\n%s", text)
			}
			if strings.Contains(strings.Join(l.Warnings(), "\n"), secret) {
				t.Errorf("the warnings show the secret: %q", l.Warnings())
			}
		})
	}
	delete(vars, "SSE_SERVER_HEADER")
	if got, want := len(mustLoad(t, vars, "-c", file).remote.Header), 2; got != want {
		t.Errorf("the headers of the file: got %d, want %d", got, want)
	}
}

func TestRemoteServersThatAreRefused(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	vars := map[string]string{"TOKEN": secret, "EMPTY": ""}
	url := func(args ...string) []string { return append([]string{"--url", "https://a/mcp"}, args...) }
	for name, tc := range map[string]struct {
		args []string
		want string // "" for none
	}{
		"no fault":                {url("--url-transport", "stateless", "--forward-header", "X-User,x-team", "--max-line-bytes", "1MiB"), ""},
		"and a command":           {url("--", "x"), `--url and the command "x": want one of them`},
		"and the demo":            {url("--demo"), "--url and --demo: want one of them"},
		"with env":                {url("--env", "A=1"), "--env: has no effect on a remote server"},
		"with dir":                {url("--dir", "/"), "--dir \"/\": has no effect on a remote server"},
		"header of a command":     {[]string{"--header", "A: b", "--", "x"}, "--header: has no effect without --url"},
		"header of the demo":      {[]string{"--header", "A: b"}, "--header: has no effect without --url"},
		"token file of none":      {[]string{"--bearer-token-file", "x"}, "--bearer-token-file \"x\": has no effect without --url"},
		"forwarded to none":       {[]string{"--forward-header", "A"}, "--forward-header: has no effect without --url"},
		"transport of none":       {[]string{"--url-transport", "sse", "--", "x"}, "--url-transport sse: has no effect without --url"},
		"no such transport":       {url("--url-transport", "http"), `--url-transport "http": want one of auto, streamable, stateless, sse`},
		"no URL":                  {[]string{"--url", "::" + secret}, "--url: want a URL, such as https://"},
		"password with a slash":   {[]string{"--url", "https://u:" + secret + "/x@a/mcp"}, "--url: want a URL, such as https://"},
		"no scheme":               {[]string{"--url", secret + "/mcp"}, "--url: the address of the server must begin with http"},
		"no host":                 {[]string{"--url", "http:///" + secret}, "--url: the address of the server names no host"},
		"header without a colon":  {url("--header", secret), "--header: want 'NAME: VALUE'"},
		"header without a name":   {url("--header", ":"+secret), "--header: want the name of a header that is free to set"},
		"header of the transport": {url("--header", "content-type: "+secret), "--header: want the name of a header that is free to set: the transport sets Content-Type itself"},
		"header of two lines":     {url("--header", "A: b\rc"), "--url: the header \"A\" has a name or value that cannot be sent"},
		"forwarded transport":     {url("--forward-header", "X-A,Mcp-Session-Id"), `--forward-header "Mcp-Session-Id": want the name of a header that is free to set`},
		"unset variable":          {url("--header", "A: "+secret+"${NOPE}"), "--header: A: the environment variable NOPE is not set"},
		"empty variable":          {[]string{"--url", "https://${EMPTY}"}, "--url: the environment variable EMPTY is not set"},
		"form with a default":     {url("--header", "A: ${NOPE:-x}"), "--header: A: want ${NAME} with the name of an environment variable"},
		"variable without an end": {url("--header", "A: ${TOKEN"), "--header: A: want ${NAME} with the name of an environment variable"},
		"no token file":           {url("--bearer-token-file", "/does/not/exist"), `--bearer-token-file "/does/not/exist": open`},
		"empty token file":        {url("--bearer-token-file", clitest.WriteFile(t, "token", "\n")), `--bearer-token-file "/`},
		"two tokens":              {url("--bearer-token-file", clitest.WriteFile(t, "token", secret+"\n"+secret+"\n")), `--bearer-token-file "/`},
		"token twice":             {url("--header", "authorization: x", "--bearer-token-file", clitest.WriteFile(t, "token", secret)), "--bearer-token-file and an Authorization in --header: want one"},
		"tokens of the gateway":   {url("--forward-header", "authorization", "--auth-tokens-file", tokens), "--forward-header: Authorization: the remote server would get the tokens of --auth-tokens-file"},
		"forwarded, shared":       {url("--forward-header", "A", "--sessions", "shared"), "--forward-header: contradicts --sessions (shared)"},
		"forwarded, warm":         {url("--forward-header", "A", "--warm", "1"), "--warm 1: has no effect on a remote server"},
	} {
		t.Run(name, func(t *testing.T) {
			l, faults := loadWith(t, vars, tc.args...)
			switch {
			case tc.want == "" && len(faults) > 0:
				t.Errorf("got %q, want none", faults)
			case tc.want != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0], tc.want)):
				t.Errorf("got %q, want %q", faults, tc.want)
			}
			if strings.Contains(strings.Join(append(faults, l.Warnings()...), "\n"), secret) {
				t.Errorf("a message shows the secret: %q", faults)
			}
		})
	}
}

func TestPlainTextIsWarnedOf(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want bool
	}{
		"nothing secret":   {[]string{"--url", "http://a/mcp"}, false},
		"a header":         {[]string{"--url", "http://a/mcp", "--header", "A: " + secret}, true},
		"a header, TLS":    {[]string{"--url", "https://a/mcp", "--header", "A: " + secret}, false},
		"on this machine":  {[]string{"--url", "http://127.0.0.1:1/mcp", "--header", "A: " + secret}, false},
		"localhost, plain": {[]string{"--url", "http://localhost/mcp", "--header", "A: " + secret}, false},
		"a password":       {[]string{"--url", "http://u:" + secret + "@a/mcp"}, true},
	} {
		l := mustLoad(t, nil, tc.args...)
		if got := slices.ContainsFunc(l.Warnings(), func(w string) bool { return strings.Contains(w, "plain text") }); got != tc.want {
			t.Errorf("%s: got the warnings %q, want one: %v", name, l.Warnings(), tc.want)
		}
	}
	token := clitest.WriteFile(t, "token", secret)
	if err := os.Chmod(token, 0o644); err != nil {
		t.Fatal(err)
	}
	if l := mustLoad(t, nil, "--url", "https://a", "--bearer-token-file", token); len(l.Warnings()) != 1 || !strings.Contains(l.Warnings()[0], "can be read by every user") {
		t.Errorf("a token that all can read: got %q, want a warning", l.Warnings())
	}
}

// An address without a secret in it is printed as it was given.
func TestEffectiveURLIsAsGiven(t *testing.T) {
	text := mustLoad(t, map[string]string{"HOST": "a.example"}, "--url", "https://${HOST}/mcp").Effective()
	if want := "\nurl: \"https://${HOST}/mcp\"  # --url\n"; !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant%s in it", text, want)
	}
}

// What is printed takes the place of the file but for what is secret.
func TestEffectiveSettingsOfARemoteServer(t *testing.T) {
	for given, want := range map[string]string{
		"https://a/mcp":                          "\nurl: https://a/mcp  # --url\n",
		"https://u:" + secret + "@a/mcp":         "\n# url: https://a/mcp  # --url\n",
		"https://a/mcp?key=" + secret + "&x=%20": "\n# url: https://a/mcp  # --url\n",
	} {
		text := mustLoad(t, nil, "--url", given, "--header", "A: "+secret, "--url-transport", "sse").Effective()
		if !strings.Contains(text, want) || !strings.Contains(text, "\n# header: {A: \"***\"}  # --header\n") || strings.Contains(text, secret) {
			t.Errorf("got\n%s\nwant %q in it, and no secret", text, want)
		}
		if strings.Contains(text, "# url") {
			continue
		}
		second := mustLoad(t, nil, "--config", clitest.WriteFile(t, "gw.yaml", text))
		if second.remote.Address != given || second.transport != "sse" {
			t.Errorf("the file leads to %s over %s", second.remote.Address, second.transport)
		}
	}
}

// A token of one server is none of another server's business.
func TestChildrenDoNotGetTheSecretsOfRemoteServers(t *testing.T) {
	for name, value := range map[string]string{"T_TOKEN": "secret", "T_PLAIN": "plain", "SSE_SERVER_HEADER": "X-Key: secret"} {
		t.Setenv(name, value)
	}
	lookup := map[string]string{"T_TOKEN": "secret"}
	path := clitest.WriteFile(t, "gw.yaml", `servers:
  child: {command: [echo]}
  listed: {command: [echo], env-allow: [PATH, T_TOKEN], env: {OWN: "1"}}
  remote: {url: "https://example.com/mcp", header: {Authorization: "Bearer ${T_TOKEN}"}}
`)
	c := mustLoad(t, lookup, "--config", path)
	env := func(i int) []string { return c.Servers[i].Upstream().(upstream.Command).Env }
	if got := env(0); slices.ContainsFunc(got, func(v string) bool { return strings.Contains(v, "secret") }) || !slices.Contains(got, "T_PLAIN=plain") {
		t.Errorf("the child gets %q", got)
	}
	if got := env(1); len(got) != 3 || !slices.Contains(got, "T_TOKEN=secret") || !slices.Contains(got, "OWN=1") {
		t.Errorf("the child with a list gets %q", got)
	}
}
