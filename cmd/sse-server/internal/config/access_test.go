package config

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// tokensOf writes a file with a token for each principal: its name twice.
func tokensOf(t *testing.T, principals ...string) string {
	t.Helper()
	var all strings.Builder
	for _, principal := range principals {
		fmt.Fprintf(&all, "%s:%s-0123456789abcdef\n", principal, principal)
	}
	return clitest.WriteFile(t, "tokens", all.String())
}

// statusFor returns what a function of authentication says of the token of a principal: 200, or the status of the
// refusal.
func statusFor(authenticate func(*http.Request) (string, error), principal string) int {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+principal+"-0123456789abcdef")
	_, err := authenticate(r)
	refused, _ := errors.AsType[*auth.Error](err)
	switch {
	case err == nil:
		return http.StatusOK
	case refused.Status == 0:
		return http.StatusUnauthorized
	}
	return refused.Status
}

// Each server and each view decides who may use its own URL; in a view, the server decides too. Principals at the top
// level hold for all that have none of their own.
func TestPrincipals(t *testing.T) {
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", "auth-tokens-file: "+tokensOf(t, "alice", "bob", "ci-1")+`
principals: [alice, ci-*]
servers:
  all: {}
  open: {principals: ["*"]}
  none: {principals: []}
views:
  team: {servers: {all: {}, open: {}, none: {}}}
  more: {principals: "b?b", servers: {all: {}}}
`))
	var got []string
	for _, s := range c.Endpoints() {
		line := s.Name
		for _, principal := range []string{"alice", "bob", "ci-1", "stranger"} {
			line += fmt.Sprint(" ", statusFor(s.Authenticate, principal))
		}
		o := c.Gateway(s, gateway.Options{})
		got = append(got, fmt.Sprint(line, " ", forprogram.OptionsOf(&o).Restricted))
	}
	ssetest.WantLines(t, got, []string{"team 200 403 200 401 true", "more 403 200 403 401 true", "all 200 403 200 401 true",
		"open 200 200 200 401 true", "none 403 403 403 401 true"})
	members, _ := c.Views[0].Composed(func(string) jsonrpc.Dialer { return nil })
	for principal, want := range map[string]string{"alice": "true true false", "bob": "false true false"} {
		ctx, may := asker.NewContext(t.Context(), &asker.Asker{Principal: principal}), ""
		for _, m := range members {
			may += fmt.Sprint(" ", m.Allow(ctx))
		}
		ssetest.Want(t, principal, may[1:], want)
	}
	ssetest.Want(t, "sse-server itself", members[2].Allow(context.Background()), true)
	ssetest.Want(t, "warnings", strings.Join(c.Warnings, "\n"), "")
}

// Without principals nothing is restricted, and no member asks who the client is.
func TestNoPrincipals(t *testing.T) {
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", "auth-tokens-file: "+tokensOf(t, "bob")+"\nservers: {a: {principals: }}\nviews: {v: {servers: {a: {}}}}\n"))
	members, _ := c.Views[0].Composed(func(string) jsonrpc.Dialer { return nil })
	o := c.Gateway(c.Servers[0], gateway.Options{})
	ssetest.Want(t, "restricted", fmt.Sprint(forprogram.OptionsOf(&o).Restricted, members[0].Allow != nil), "false false")
	ssetest.Want(t, "bob", fmt.Sprint(statusFor(c.Servers[0].Authenticate, "bob"), statusFor(c.Operators, "bob")), "200 200")
}

// Once principals are given, operators alone get their routes. Metrics stay where they were.
func TestOperators(t *testing.T) {
	tokens := "auth-tokens-file: " + tokensOf(t, "alice", "bob") + "\n"
	oauth := "public-url: https://gw.example.com\noauth: {issuer: https://login.example.com}\n"
	const admin = "admin-addr: 127.0.0.1:0\n"
	for _, tc := range []struct{ content, want, warning string }{
		{tokens + "operators: [al*]\n", "200 403 200", ""},
		{tokens + "operators: []\n", "403 403 200", ""},
		{tokens + "principals: [bob]\noperators: [alice]\n", "200 403 200", ""},
		{tokens + admin + "principals: [bob]\n", "403 403 200", "gw.yaml:3:13: principals: nobody gets /status, /connections and /-/reload: name principals"},
		{tokens + "principals: [bob]\n", "403 403 200", ""}, // those routes are not there
		{tokens + "servers: {a: {principals: [carol]}}\noperators: [alice]\n", "200 403 200", `gw.yaml:2:27: principals: no principal is called "carol"`},
		{tokens + oauth + "principals: [oauth:*, \"*a\", bob]\noperators: [alice, carol]\n", "200 403 200", `gw.yaml:5:12: operators: no principal is called "carol"`},
		{oauth + admin + "principals: [oauth:carol]\n", "403 403 ", "gw.yaml:4:13: principals: nobody gets /status"},
	} {
		c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", tc.content))
		got := fmt.Sprint(statusFor(c.Operators, "alice"), " ", statusFor(c.Operators, "bob"), " ")
		if c.Scrapers != nil {
			got += fmt.Sprint(statusFor(c.Scrapers, "bob"))
		}
		ssetest.Want(t, tc.content, got, tc.want)
		if text := strings.Join(c.Warnings, "\n"); (text != "") != (tc.warning != "") || !strings.Contains(text, tc.warning) {
			t.Errorf("%s: got the warnings %q, want %q", tc.content, text, tc.warning)
		}
	}
}

func TestBadPrincipals(t *testing.T) {
	tokens := "auth-tokens-file: " + tokensOf(t, "alice") + "\n"
	for content, want := range map[string]string{
		"principals: [alice]\n":                                               ":1:13: principals: without authentication nobody has a name: want auth-tokens-file or oauth too",
		"servers: {a: {principals: []}}\n":                                    ":1:27: principals: without authentication",
		"servers: {a: {}}\nviews: {v: {principals: [x], servers: {a: {}}}}\n": ":2:25: principals: without authentication",
		"operators: [alice]\n":                                                ":1:12: operators: want auth-tokens-file too: the routes for operators take its tokens alone",
		"public-url: https://gw.example.com\noauth: {issuer: https://login.example.com}\noperators: [oauth:alice]\n": ":3:12: operators: want auth-tokens-file too",
		tokens + "principals: [alice, '!bob']\n":        `:2:13: principals: the glob "!bob" cannot be read: ! leaves nothing out here`,
		tokens + "operators: ['']\n":                    ":2:12: operators: a glob is empty",
		tokens + "servers: {a: {operators: [alice]}}\n": `:2:15: unknown key "operators" in servers.a`,
	} {
		path := clitest.WriteFile(t, "gw.yaml", content)
		wantRefusal(t, nil, path+want, "-c", path)
	}
	wantRefusal(t, nil, "unknown flag --principals: it is a key of the file", "--principals", "alice")
	// There is one client on stdio, without a token: it runs the program itself.
	mustLoad(t, nil, "stdio", "-c", clitest.WriteFile(t, "gw.yaml", "servers: {a: {principals: []}, b: {}}\noperators: [alice]\n"))
}

// A reload that leaves nobody names what it has changed, and the hash tells it.
func TestChangedPrincipalsAreNamed(t *testing.T) {
	tokens := "auth-tokens-file: " + tokensOf(t, "alice") + "\n"
	load := func(more string) *Config {
		return mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", tokens+more))
	}
	before, after := load("servers: {a: {}, b: {}}\n"), load("servers: {a: {principals: []}, b: {}}\noperators: []\n")
	ssetest.Want(t, "the changes", strings.Join(before.Changes(after), ", "), "operators, a.principals")
	ssetest.Want(t, "the hashes are equal", before.Hash() == after.Hash(), false)
}

// A token for a view needs the scopes of the view alone. Clients are told of those of its servers too, because each
// server wants its own.
func TestScopesOfViews(t *testing.T) {
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", "public-url: https://gw.example.com\noauth: {issuer: https://login.example.com, page-client-id: p}\nscopes: [mcp]\n"+
		"servers: {a: {}, b: {scopes: [mcp, write]}, c: {scopes: [x, write]}}\nviews: {v: {servers: {a: {}, b: {}, c: {}}}, w: {scopes: [write], servers: {b: {}}}}\n"))
	var got []string
	for _, s := range c.Endpoints() {
		login := c.Gateway(s, gateway.Options{}).PageLogin
		got = append(got, fmt.Sprint(s.Name, s.protection.Scopes, s.protection.Supported, login.Scopes))
	}
	ssetest.WantLines(t, got, []string{"v[mcp] [write x] [mcp write x]", "w[write] [mcp] [write mcp]", "a[mcp] [] [mcp]", "b[mcp write] [] [mcp write]", "c[x write] [] [x write]"})
	members, _ := c.Views[0].Composed(func(string) jsonrpc.Dialer { return nil })
	ssetest.Want(t, "a server that wants no more than the view", members[0].Allow == nil, true)
	for principal, want := range map[string]bool{"alice": true, "oauth:alice": false, "": true} { // of the file, and of a token that nobody has checked
		ctx := asker.NewContext(t.Context(), &asker.Asker{Principal: principal, Credentials: func() string { return "Bearer x.y.z" }})
		ssetest.Want(t, "another server, "+principal, members[1].Allow(ctx), want)
	}
}
