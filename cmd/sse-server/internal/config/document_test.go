package config

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A gateway has the document of each server at which logins are used, below its page; the command login knows that of a
// login for all clients.
func TestClientDocuments(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:"+strings.Repeat("a", 20)+"\n")
	const public = "public-url: https://gw.example.com/team/\n"
	const several = "servers:\n  notes: {url: \"https://mcp.example.com/mcp\", login: per-principal}\n" +
		"  mail: {url: \"https://mail.example.com/mcp\", login: shared}\n  docs: {url: \"https://docs.example.com/mcp\"}\n" +
		"  off: {url: \"https://off.example.com/mcp\", login: off}\n  demo: {command: [x]}\n"
	for name, c := range map[string]struct {
		file string
		want string // URLs below https://gw.example.com/team, and where the logins come back
	}{
		"several servers":      {public + several, "/login/notes/client.json page, /login/mail/client.json here"},
		"a prefix":             {public + "prefix: /ai\n" + several, "/ai/login/notes/client.json page, /ai/login/mail/client.json here"},
		"a server of the name": {public + "servers:\n  login: {url: \"https://mail.example.com/mcp\", login: shared}\n", "/login/login/client.json here"},
		"one server":           {public + "url: https://mail.example.com/mcp\nlogin: shared\n", "/login/client.json here"},
		"one page":             {public + "url: https://mail.example.com/mcp\nlogin: per-principal\n", "/login/client.json page"},
		"one network alone":    {"public-url: https://gw.internal\n" + several, ""},
		"no https":             {"public-url: http://gw.example.com\n" + strings.ReplaceAll(several, "per-principal", "shared"), ""},
		"no public-url":        {strings.ReplaceAll(several, "per-principal", "shared"), ""},
	} {
		file := clitest.WriteFile(t, "gw.yaml", "auth-tokens-file: "+tokens+"\n"+c.file)
		loaded := mustLoad(t, clitest.State(t), "-c", file)
		var got []string
		for _, s := range loaded.Each() {
			path := loaded.loginPath(s) + "/client.json"
			d, has := loaded.ClientDocument(path)
			if !has {
				continue
			}
			ssetest.Want(t, "URL", d.URL(), "https://gw.example.com/team"+path)
			where := map[bool]string{false: " page", true: " here"}[d.OnThisMachine]
			got = append(got, path+where)
			ssetest.Want(t, "URL for the command", loaded.DocumentURL(s), map[bool]string{true: d.URL()}[d.OnThisMachine])
		}
		ssetest.Want(t, name, strings.Join(got, ", "), c.want)
		for _, path := range []string{"/client.json", "/login/gone/client.json", "/login/mail/client.json/", "/login/mail", "/mail/client.json", "/login//client.json"} {
			if d, has := loaded.ClientDocument(path); has {
				t.Errorf("%s: %s has %s", name, path, d.URL())
			}
		}
	}
}

// The command login knows of no document where no file names the gateway.
func TestNoDocumentWithoutAFile(t *testing.T) {
	env := clitest.State(t)
	env["SSE_SERVER_PUBLIC_URL"], env["SSE_SERVER_LOGIN"] = "https://gw.example.com", "shared"
	c := mustLoad(t, env, "login", "https://mail.example.com/mcp")
	s, err := c.LoginServer()
	ssetest.Must(t, err)
	ssetest.Want(t, "document", c.DocumentURL(s), "")
}
