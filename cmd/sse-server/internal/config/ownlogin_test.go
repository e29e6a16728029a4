package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A login of each principal is refused at load, with its place and what to do, where it would not be sound.
func TestOwnLoginsAreRefused(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:s3cret-0123456789-0123456789\n")
	key := clitest.WriteFile(t, "key", strings.Repeat("k", 64)+"\n")
	const public, notes = "public-url: https://gw.example.com\n", "servers:\n  notes: {url: \"https://mcp.example.com/mcp\", login: per-principal"
	auth := "auth-tokens-file: " + tokens + "\n"
	for name, c := range map[string]struct {
		file, args string
		env        map[string]string // nil: with a place for what is kept
		want       string            // empty: it is taken
	}{
		"as it should be":        {file: public + auth + notes + "}\n"},
		"a check":                {file: public + auth + notes + "}\n", args: "check --offline"},
		"a path before it":       {file: "public-url: https://gw.example.com/team/\n" + auth + notes + "}\n"},
		"no authentication":      {file: public + notes + "}\n", want: "without authentication there are no principals: want auth-tokens-file or oauth"},
		"no public-url":          {file: auth + notes + "}\n", want: "want public-url too, with https"},
		"public-url without TLS": {file: "public-url: http://gw.example.com\n" + auth + notes + "}\n", want: "public-url has http: browsers must come by https"},
		"oauth":                  {file: public + "oauth: {issuer: \"https://issuer.example.com\", page-client-id: page}\n" + notes + "}\n"},
		"oauth without a client": {file: public + auth + "oauth: {issuer: \"https://issuer.example.com\"}\n" + notes + "}\n", want: "may redirect to https://gw.example.com/login/notes/principal"},
		"a client":               {file: public + auth + notes + ", login-client: {client-id: c, client-secret: s, issuer: \"https://i.example.com\"}}\n"},
		"nats":                   {file: public + auth + "nats: nats://127.0.0.1:4222\nid-key-file: " + key + "\n" + notes + "}\n", want: "is not there yet with nats"},
		"no place":               {file: public + auth + "id-key-file: " + key + "\n" + notes + "}\n", env: map[string]string{}, want: "there is no place to keep logins"},
		"a key that is not kept": {file: public + auth + notes + "}\n", env: map[string]string{"STATE_DIRECTORY": "/dev/null/x"}, want: "the key that seals the logins is not kept"},
		"stdio":                  {file: public + auth + notes + "}\n", args: "stdio", want: "stdio has one client"},
		"shared sessions":        {file: public + auth + notes + ", sessions: shared}\n", want: "cannot share a session"},
		"warm sessions":          {file: public + auth + notes + ", warm: 1}\n", want: "a session started before its client comes has no login: leave warm out"},
		"credentials":            {file: public + auth + notes + ", header: {Authorization: Bearer x}}\n", want: "contradicts the credentials"},
		"no https":               {file: public + auth + strings.Replace(notes, "https://mcp", "http://mcp", 1) + "}\n", want: "a login needs https"},
		"a server called login":  {file: public + auth + notes + "}\n  login: {url: \"https://x.example.com/mcp\"}\n", want: "the path of a server"},
		"the command login":      {file: public + auth + notes + "}\n", args: "login notes"},
	} {
		t.Run(name, func(t *testing.T) {
			env := c.env
			if env == nil {
				env = clitest.State(t)
			}
			file := clitest.WriteFile(t, "gw.yaml", c.file)
			loaded, err := Load(append(strings.Fields(c.args), "-c", file), clitest.Environment(env), new(Config))
			if c.want != "" {
				ssetest.WantText(t, "error", err, filepath.Base(file)+":", "login: ", c.want)
				return
			}
			ssetest.Must(t, err)
			ssetest.Want(t, "each has its own", loaded.Each()[0].Remote().IsPerPrincipal(), c.args != "login notes")
		})
	}
}

// A token without a name is warned of: the page of a login names whose it is.
func TestTokensWithoutANameAreWarnedOf(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:"+strings.Repeat("a", 20)+"\n"+strings.Repeat("b", 20)+"\n")
	for login, want := range map[string]string{
		"per-principal": tokens + ":2: no name: write alice:TOKEN, so that the page of a login can say whose it is",
		"shared":        "",
	} {
		file := clitest.WriteFile(t, "gw.yaml", "public-url: https://gw.example.com\nauth-tokens-file: "+tokens+
			"\nservers:\n  notes: {url: \"https://mcp.example.com/mcp\", login: "+login+"}\n")
		ssetest.Want(t, login, strings.Join(mustLoad(t, clitest.State(t), "-c", file).Warnings, "\n"), want)
	}
}

// An option that the top level has for all servers is called by its place there.
func TestLoginClientOfTheTopLevel(t *testing.T) {
	file := clitest.WriteFile(t, "gw.yaml", "login-client: {client-id: c, issuer: \"https://i.example.com\"}\nservers:\n  notes: {url: \"https://mcp.example.com/mcp\"}\n")
	_, err := Load([]string{"-c", file}, clitest.Environment(clitest.State(t)), new(Config))
	ssetest.WantText(t, "error", err, filepath.Base(file)+":1:15: login-client: has no effect without login: per-principal")
}

// The page of a server is at its name below /login, and takes the tokens of those who may use the server.
func TestLoginPages(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:"+strings.Repeat("a", 20)+"\nbob:"+strings.Repeat("b", 20)+"\n")
	file := clitest.WriteFile(t, "gw.yaml", "public-url: https://gw.example.com/team/\nprefix: /ai\nauth-tokens-file: "+tokens+
		"\noperators: [alice]\nservers:\n  notes: {url: \"https://mcp.example.com/mcp\", login: per-principal, principals: [alice]}\n"+
		"  mail: {url: \"https://mail.example.com/mcp\", login: per-principal}\n  docs: {url: \"https://docs.example.com/mcp\"}\n")
	c := mustLoad(t, clitest.State(t), "-c", file)
	for path, want := range map[string]string{
		"/ai/login/notes": "", "/ai/login/notes/callback": "/callback", "/ai/login/mail/done": "/done", "/ai/login/docs": "none",
		"/ai/login": "none", "/login/notes": "none", "/ai/login/notes/": "none", "/ai/login/notes2": "none", "/ai/login/notes/x": "none",
	} {
		page, sub := c.LoginPage(path)
		if page == nil {
			sub = "none"
		}
		ssetest.Want(t, path, sub, want)
	}
	page, _ := c.LoginPage("/ai/login/notes")
	const at = "https://gw.example.com/team/ai/login/notes"
	ssetest.Want(t, "page", page.Credentials.Own.Page, at)
	who, err := page.Principal(strings.Repeat("a", 20))
	ssetest.Must(t, err)
	ssetest.Want(t, "principal", who, "alice")
	for _, token := range []string{strings.Repeat("b", 20), "x", ""} { // bob may not use it
		if who, err := page.Principal(token); err == nil {
			t.Errorf("the token %q is that of %s", token, who)
		}
	}
	for _, one := range []struct {
		page, principal string
		want            bool
	}{
		{at, "alice", true}, {at, "bob", false}, {at, "carol", false}, {at, "", false},
		{strings.Replace(at, "notes", "mail", 1), "bob", true}, {strings.Replace(at, "notes", "gone", 1), "bob", true},
	} {
		ssetest.Want(t, one.principal+" at "+one.page, c.MayLogIn(login.Own{Page: one.page, Principal: one.principal}), one.want)
	}
	if c.LocalOnly(c.Each()...) != nil {
		t.Error("the servers are for this machine alone")
	}
}

// The client that is registered at the issuer of a remote server is that of the principals' logins alone, and has its
// issuer.
func TestLoginClient(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:"+strings.Repeat("a", 20)+"\n")
	head := "public-url: https://gw.example.com\nauth-tokens-file: " + tokens + "\nservers:\n  notes: {url: \"https://mcp.example.com/mcp\", login: per-principal, login-client: "
	env := clitest.State(t)
	env["SECRET"] = "s3cret"
	c := mustLoad(t, env, "-c", clitest.WriteFile(t, "gw.yaml", head+"{client-id: c, client-secret: \"${SECRET}\", issuer: \"https://i.example.com\"}}\n"))
	page, _ := c.LoginPage("/login/notes")
	own := page.Credentials
	ssetest.Want(t, "client", own.Client.ID+" "+own.Client.Secret+" "+own.ClientIssuer, "c s3cret https://i.example.com")
	for text, want := range map[string]string{
		"{client-id: c}}":                                   "want client-id and issuer",
		"{issuer: \"https://i.example.com\"}}":              "want client-id and issuer",
		"{client-id: c, issuer: \"http://i.example.com\"}}": "issuer: want a URL such as https://",
		"{id: c}}": "unknown key \"id\"",
	} {
		wantRefusal(t, clitest.State(t), want, "-c", clitest.WriteFile(t, "gw.yaml", head+text+"\n"))
	}
	for _, word := range []string{"shared", "off"} {
		wantRefusal(t, clitest.State(t), "has no effect without login: per-principal", "-c", clitest.WriteFile(t, "gw.yaml",
			strings.Replace(head, "per-principal", word, 1)+"{client-id: c, issuer: \"https://i.example.com\"}}\n"))
	}
}

// The principals of an issuer are those of its name and claim: the same name is another one elsewhere. A token of the
// file names nobody there.
func TestPrincipalsOfAnIssuerMayLogIn(t *testing.T) {
	const file = "public-url: https://gw.example.com\noauth: {issuer: \"https://i.example.com\", page-client-id: page}\n" +
		"servers:\n  notes: {url: \"https://mcp.example.com/mcp\", login: per-principal, principals: [\"oauth:a*\"], scopes: [notes]}\n"
	c := mustLoad(t, clitest.State(t), "-c", clitest.WriteFile(t, "gw.yaml", file))
	page, sub := c.LoginPage("/login/notes/principal")
	ssetest.Want(t, "below the page", sub, "/principal")
	ssetest.Want(t, "where a person shows who it is", *page.TokenIssuer, login.TokenIssuer{URL: "https://i.example.com",
		ClientID: "page", Resource: "https://gw.example.com/notes/mcp", Scopes: []string{"notes"}})
	const at, authority = "https://gw.example.com/login/notes", "sub of https://i.example.com"
	ssetest.Want(t, "authority", page.Credentials.For("oauth:alice", login.Asker{}).Own.Authority, authority)
	for _, one := range []struct {
		principal, authority string
		want                 bool
	}{
		{"oauth:alice", authority, true}, {"oauth:bob", authority, false}, {"oauth:alice", "", false}, {"alice", "", false},
		{"oauth:alice", "mail of https://i.example.com", false}, {"oauth:alice", "sub of https://i2.example.com", false},
	} {
		ssetest.Want(t, one.principal+" "+one.authority,
			c.MayLogIn(login.Own{Page: at, Principal: one.principal, Authority: one.authority}), one.want)
	}
}
