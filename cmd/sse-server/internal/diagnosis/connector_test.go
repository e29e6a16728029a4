package diagnosis_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// ofIssuer are metadata of an issuer with which clients can log in.
const ofIssuer = `{"issuer":"SELF","authorization_endpoint":"SELF/a","token_endpoint":"SELF/t","code_challenge_methods_supported":["S256"]}`

// Each thing that keeps a connector from a server has a step of its own, which alone names it.
func TestConnectors(t *testing.T) {
	t.Parallel()
	const meta = "/.well-known/oauth-protected-resource"
	good := `{"resource":"SELF/mcp","authorization_servers":["SELF"]}`
	both := map[string]string{meta + "/mcp": good, meta: good}
	token := func(aud string) string {
		return "Bearer e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":`+aud+`}`)) + ".x"
	}
	const challenge = `Bearer resource_metadata="SELF` + meta + `/mcp"`
	for name, test := range map[string]struct {
		challenge string
		documents map[string]string
		noSlash   bool
		given     string
		lines     []string // and no other step has failed beside the address, which a test has on this machine
	}{
		"all is well":             {challenge, both, false, "", nil},
		"no challenge":            {"", both, false, "", []string{"WWW-Authenticate: failed: the 401 has no WWW-Authenticate: Bearer"}},
		"no address in it":        {"Bearer", both, false, "", []string{"WWW-Authenticate: failed: WWW-Authenticate has no resource_metadata"}},
		"not at the root":         {challenge, map[string]string{meta + "/mcp": good}, false, "", []string{"metadata at the root: not served: SELF" + meta + ": HTTP 404; clients need none there"}},
		"nowhere":                 {"Bearer", nil, false, "", []string{"WWW-Authenticate: failed", "metadata at the path: failed", "metadata at the root: failed: SELF" + meta + ": HTTP 404"}},
		"not at the path":         {challenge, map[string]string{meta: good}, false, "", []string{"metadata at the path: failed: SELF" + meta + "/mcp: HTTP 404", "OAuth: resource metadata: failed: not found where WWW-Authenticate says"}},
		"another one at the root": {challenge, map[string]string{meta + "/mcp": good, meta: strings.Replace(good, "/mcp", "", 1)}, false, "", []string{"metadata at the root: not served: SELF" + meta + " names another resource"}},
		"of another resource":     {challenge, map[string]string{meta + "/mcp": strings.Replace(good, "/mcp", "/", 1), meta: strings.Replace(good, "/mcp", "/", 1)}, false, "", []string{"resource: failed: the resource is SELF/, and the URL is SELF/mcp"}},
		"no slash":                {challenge, both, true, "", []string{"a slash at the end: not served: /mcp/ answers HTTP 404, and the URL HTTP 401: enter the URL as it is"}},
		"another audience":        {challenge, both, false, token(`["a","b"]`), []string{"audience: failed: the token is for a, b, and the resource is SELF/mcp"}},
		"its audience":            {challenge, both, false, token(`"SELF/mcp"`), nil},
	} {
		var self string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			document, ok := test.documents[r.URL.Path]
			switch {
			case ok:
				_, _ = io.WriteString(w, strings.ReplaceAll(document, "SELF", self))
			case r.URL.Path == "/.well-known/oauth-authorization-server":
				_, _ = io.WriteString(w, strings.ReplaceAll(ofIssuer, "SELF", self))
			case r.URL.Path != "/mcp" && (r.URL.Path != "/mcp/" || test.noSlash):
				w.WriteHeader(http.StatusNotFound)
			default:
				if test.challenge != "" {
					w.Header().Set("WWW-Authenticate", strings.ReplaceAll(test.challenge, "SELF", self))
				}
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		self = s.URL
		header := http.Header{}
		if test.given != "" {
			header.Set("Authorization", strings.ReplaceAll(test.given, base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"SELF/mcp"}`)), base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"`+self+`/mcp"}`))))
		}
		got, _ := look(t, diagnosis.Options{URL: self + "/mcp", Connector: "claude.ai", Header: header})
		got = strings.ReplaceAll(got, self, "SELF")
		wantLines(t, name+"\n"+got, "connector: address: failed: it has no https: claude.ai connects to https alone")
		wantFailed := 1 + strings.Count(strings.Join(test.lines, "\n"), ": failed")
		if n := strings.Count(got[strings.Index(got, "connector: address"):], ": failed: "); n != wantFailed {
			t.Errorf("%s: %d steps have failed:\n%s", name, n-1, got)
		}
		wantLines(t, name+"\n"+got, test.lines...)
		s.Close()
	}
	for address, want := range map[string]string{
		"https://127.0.0.1:8443/mcp": "it is at port 8443: chatgpt connects to port 443 alone -> serve it at port 443",
		"https://127.0.0.1/mcp":      "it is at an address of this machine or network, which chatgpt does not reach",
	} {
		got, works := look(t, diagnosis.Options{URL: address, Connector: "chatgpt"})
		if works {
			t.Errorf("%s works", address)
		}
		wantLines(t, got, "connector: address: failed: "+want)
	}
	// Without a connector there is no such step.
	got, _ := look(t, diagnosis.Options{URL: guarded(t, http.StatusUnauthorized, challenge, both) + "/mcp"})
	if strings.Contains(got, "connector") {
		t.Errorf("got %s", got)
	}
}

// A connector has none of the credentials that the user has given: its steps say what it meets without them.
func TestConnectorsHaveNoCredentials(t *testing.T) {
	t.Parallel()
	const meta = "/.well-known/oauth-protected-resource"
	bearer, key := http.Header{"Authorization": {"Bearer GOOD"}}, http.Header{"X-Api-Key": {"GOOD"}}
	answer := func(status int, header, value string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, self string) {
			w.Header().Set(header, strings.ReplaceAll(value, "SELF", self))
			w.WriteHeader(status)
		}
	}
	challenge := answer(http.StatusUnauthorized, "WWW-Authenticate", `Bearer resource_metadata="SELF`+meta+`/mcp"`)
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return greeter() }, nil)
	for name, test := range map[string]struct {
		header   http.Header
		user     string
		stranger func(w http.ResponseWriter, self string)
		want     []string
	}{
		"403 for want of a token": {bearer, "", answer(http.StatusForbidden, "", ""), []string{"connector: WWW-Authenticate: failed: without a token it answers HTTP 403, and not 401 with a challenge"}},
		"a web page":              {bearer, "", answer(http.StatusOK, "Content-Type", "text/html"), []string{"connector: WWW-Authenticate: failed: without a token there is a web page"}},
		"metadata elsewhere":      {bearer, "", answer(http.StatusUnauthorized, "WWW-Authenticate", `Bearer resource_metadata="SELF/inside"`), []string{"connector: WWW-Authenticate: ok: names SELF/inside", "OAuth: resource metadata: failed: not found where WWW-Authenticate says: SELF/inside (HTTP 404)"}},
		"a key":                   {key, "", challenge, []string{"connector: WWW-Authenticate: ok: names SELF", "connector: resource: ok", "OAuth: issuer metadata: ok"}},
		"a password":              {nil, "me:GOOD@", challenge, []string{"connector: WWW-Authenticate: ok: names SELF", "connector: resource: ok", "OAuth: issuer metadata: ok"}},
	} {
		var self string
		self = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, password, _ := r.BasicAuth()
			switch {
			case r.URL.Path == meta+"/mcp":
				_, _ = io.WriteString(w, strings.ReplaceAll(`{"resource":"SELF/mcp","authorization_servers":["SELF"]}`, "SELF", self))
			case r.URL.Path == "/.well-known/oauth-authorization-server":
				_, _ = io.WriteString(w, strings.ReplaceAll(ofIssuer, "SELF", self))
			case !strings.HasPrefix(r.URL.Path, "/mcp"):
				w.WriteHeader(http.StatusNotFound)
			case r.Header.Get("Authorization") == "Bearer GOOD" || r.Header.Get("X-Api-Key") == "GOOD" || password == "GOOD":
				sdk.ServeHTTP(w, r)
			default:
				test.stranger(w, self)
			}
		}))
		got, _ := look(t, diagnosis.Options{URL: strings.Replace(self, "://", "://"+test.user, 1) + "/mcp", Connector: "claude.ai", Header: test.header})
		wantLines(t, name+"\n"+strings.ReplaceAll(got, self, "SELF"), append([]string{"Streamable HTTP: a call: ok"}, test.want...)...)
	}
}

// The steps of a connector end the sessions that they open, keep the form of the path, and use the transport that the
// server has.
func TestConnectorsWithoutALogin(t *testing.T) {
	t.Parallel()
	var ended atomic.Int32
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return greeter() }, nil)
	streamable := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.EscapedPath(); path != "/a%2Fb" && path != "/a%2Fb/" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.Method == http.MethodDelete {
			ended.Add(1)
		}
		sdk.ServeHTTP(w, r)
	}))
	sse := serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return greeter() }, nil))
	for _, address := range []string{streamable + "/a%2Fb", sse + "/sse"} {
		got, _ := look(t, diagnosis.Options{URL: address, Connector: "claude.ai"})
		wantLines(t, got, "connector: WWW-Authenticate: ok: no login is asked for: HTTP 200", "connector: a slash at the end: ok")
	}
	if n := ended.Load(); n != 3 { // of Streamable HTTP, of the challenge and of the slash
		t.Errorf("%d sessions were ended", n)
	}
}
