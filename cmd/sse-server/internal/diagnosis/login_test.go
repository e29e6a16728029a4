package diagnosis_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// guarded is a server that refuses requests with a status and WWW-Authenticate, and serves documents by
// their paths. SELF in both is its address.
func guarded(t *testing.T, status int, challenge string, documents map[string]string) string {
	t.Helper()
	var self string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if document, ok := documents[r.URL.Path]; ok {
			for name := range r.Header {
				if name == "Authorization" || name == "X-Key" {
					t.Errorf("GET %s has the header %s of the user", r.URL.Path, name)
				}
			}
			_, _ = io.WriteString(w, strings.ReplaceAll(document, "SELF", self))
			return
		}
		if strings.HasPrefix(r.URL.Path, "/.well-known") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if challenge != "" {
			w.Header().Set("WWW-Authenticate", strings.ReplaceAll(challenge, "SELF", self))
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	self = s.URL
	return self
}

// A refusal is told by its reason: the token is missing, refused, or not enough.
func TestTokens(t *testing.T) {
	for name, test := range map[string]struct {
		status           int
		challenge, given string
		want             string
	}{
		"missing":              {401, `Bearer realm="x"`, "", "authentication: failed: HTTP 401 -> give a token"},
		"refused":              {401, `Bearer error="invalid_token", error_description="it has expired"`, "Bearer old", "failed: HTTP 401: it has expired -> the token is not accepted"},
		"scope missing":        {403, `Bearer error="insufficient_scope", scope="files:read"`, "Bearer weak", `failed: HTTP 403 -> the token is valid and lacks a scope: get one with "files:read"`},
		"some scope missing":   {403, `Bearer error="insufficient_scope"`, "Bearer weak", `-> the token is valid and lacks a scope: get one with more`},
		"no challenge":         {401, "", "", "failed: HTTP 401; it has no WWW-Authenticate that can be read"},
		"password missing":     {401, `Basic realm="x"`, "", "-> the token is missing: give user and password"},
		"another scheme":       {401, `Bearer realm="x"`, "Basic YTpi", "-> the Authorization that was given is basic, and the server asks for bearer"},
		"no scheme":            {401, `Bearer realm="x"`, "sk-S3CRET", "-> the Authorization that was given has no scheme: write Bearer before the token"},
		"no scheme, no reason": {401, "", "sk-S3CRET", "-> the Authorization that was given has no scheme"},
		"several challenges":   {401, `Basic realm="x", Bearer realm="y"`, "Bearer old", "-> the token is not accepted"},
		"forbidden, no reason": {403, "", "Bearer good", "authentication: failed: HTTP 403 -> use a token or an address that is allowed"},
	} {
		header := http.Header{}
		if test.given != "" {
			header.Set("Authorization", test.given)
		}
		got, works := look(t, diagnosis.Options{URL: guarded(t, test.status, test.challenge, nil) + "/mcp", Header: header})
		if works || strings.Contains(got, "initialize") {
			t.Errorf("%s: it went on:\n%s", name, got)
		}
		if strings.Contains(strings.ToLower(got), "s3cret") {
			t.Errorf("%s: the token is shown:\n%s", name, got)
		}
		wantLines(t, name+"\n"+got, test.want)
	}
}

// After a 401, the documents that clients read for logging in are read, in their order, and without the
// headers of the user.
func TestLogin(t *testing.T) {
	t.Parallel()
	const (
		resource = "/.well-known/oauth-protected-resource"
		server   = "/.well-known/oauth-authorization-server"
		openid   = "/.well-known/openid-configuration"
		ours     = `{"resource":"SELF/mcp","authorization_servers":["SELF/realm"]}`
	)
	issuer := func(name, more string) string {
		return fmt.Sprintf(`{"issuer":%q,"authorization_endpoint":"SELF/a","token_endpoint":"SELF/t","code_challenge_methods_supported":["S256"]%s}`, name, more)
	}
	realm := issuer("SELF/realm", "")
	for name, test := range map[string]struct {
		challenge string
		documents map[string]string
		want      []string
	}{
		"as named": {`Bearer resource_metadata="SELF/meta"`, map[string]string{"/meta": ours, server + "/realm": issuer("SELF/realm", `,"registration_endpoint":"SELF/r"`)},
			[]string{"resource metadata: ok: found at SELF/meta: tokens come from SELF/realm", "issuer metadata: ok: found at SELF" + server + "/realm: clients register themselves"}},
		"by path": {"Bearer", map[string]string{resource + "/mcp": ours, openid + "/realm": realm},
			[]string{"found at SELF" + resource + "/mcp", "found at SELF" + openid + "/realm: clients need a client id"}},
		"at the root": {"Bearer", map[string]string{resource: `{"resource":"SELF","authorization_servers":["SELF/realm"]}`, "/realm" + openid: realm},
			[]string{"found at SELF" + resource + ":", "found at SELF/realm" + openid}},
		"of MCP 2025-03-26": {"Bearer", map[string]string{server: issuer("SELF", "")},
			[]string{"resource metadata: not served: WWW-Authenticate names none, and none were found: SELF" + resource + "/mcp (HTTP 404), SELF" + resource + " (HTTP 404)", "issuer metadata: ok: found at SELF" + server}},
		"none": {"Bearer", nil,
			[]string{"resource metadata: not served", "issuer metadata: not served: nor are there any of an issuer: SELF" + server + " (HTTP 404), SELF" + openid + " (HTTP 404). A token has to be given by hand"}},
		"not where they are named": {`Bearer resource_metadata="SELF/.well-known/meta"`, nil,
			[]string{"resource metadata: failed: not found where WWW-Authenticate says: SELF/.well-known/meta (HTTP 404) -> have the server, or the proxy"}},
		"of another resource": {"Bearer", map[string]string{resource + "/mcp": `{"resource":"http://inside:8080/mcp","authorization_servers":["SELF/realm"]}`, server + "/realm": realm},
			[]string{"resource metadata: failed: SELF" + resource + "/mcp is of another resource, http://inside:8080/mcp: clients do not log in -> use that URL", "issuer metadata: ok"}},
		"without an issuer": {"Bearer", map[string]string{resource + "/mcp": `{"resource":"SELF/mcp"}`},
			[]string{"resource metadata: failed: SELF" + resource + "/mcp names no authorization_servers"}},
		"of no issuer": {"Bearer", map[string]string{resource + "/mcp": ours, openid + "/realm": "<html>"},
			[]string{"issuer metadata: failed: not found: SELF" + server + "/realm (HTTP 404), SELF" + openid + "/realm (no JSON object), SELF/realm" + openid + " (HTTP 401) -> see whether the issuer runs"}},
		"of another issuer": {"Bearer", map[string]string{resource + "/mcp": ours, server + "/realm": issuer("https://inside.example.com", "")},
			[]string{"issuer metadata: failed: SELF" + server + "/realm is of another issuer, https://inside.example.com: clients stop there"}},
		"without PKCE": {"Bearer", map[string]string{resource + "/mcp": ours, server + "/realm": `{"issuer":"SELF/realm","authorization_endpoint":"SELF/a","token_endpoint":"SELF/t"}`},
			[]string{"issuer metadata: failed: SELF" + server + "/realm does not have S256", "-> switch PKCE on"}},
	} {
		self := guarded(t, http.StatusUnauthorized, test.challenge, test.documents)
		got, _ := look(t, diagnosis.Options{URL: self + "/mcp", Header: http.Header{"Authorization": {"Bearer s3cret"}, "X-Key": {"s3cret"}}})
		wantLines(t, name+"\n"+strings.ReplaceAll(got, self, "SELF"), append([]string{"authentication: failed: HTTP 401"}, test.want...)...)
	}
}

// Where a person can log in, the command for that is what to do, and a login that is not accepted is named.
func TestLoginsOfThisUser(t *testing.T) {
	const command = "sse-server login X"
	for name, test := range map[string]struct{ challenge, given, login, want string }{
		"nobody is logged in": {"Bearer", "", "", "-> run in a terminal: sse-server login X; or give a token"},
		"a password":          {"Basic", "", "", "-> the token is missing: give user and password"},
		"not accepted":        {"Bearer", "", "Bearer s3cret", "-> the login of this user is not accepted: run in a terminal: sse-server login X"},
		"a token of the user": {"Bearer", "Bearer s3cret", "", "-> the token is not accepted: get another one"},
	} {
		header := http.Header{}
		if test.given != "" {
			header.Set("Authorization", test.given)
		}
		got, _ := look(t, diagnosis.Options{URL: guarded(t, http.StatusUnauthorized, test.challenge, nil) + "/mcp", Header: header,
			Login: test.login, LoginCommand: command})
		wantLines(t, name+"\n"+got, test.want)
	}
}
