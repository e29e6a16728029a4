package diagnosis_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

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
		failed    []string // beside the address, which a test has on this machine
	}{
		"all is well":             {challenge, both, false, "", nil},
		"no challenge":            {"", both, false, "", []string{"WWW-Authenticate: failed: the 401 has no WWW-Authenticate: Bearer"}},
		"no address in it":        {"Bearer", both, false, "", []string{"WWW-Authenticate: failed: WWW-Authenticate has no resource_metadata"}},
		"not at the root":         {challenge, map[string]string{meta + "/mcp": good}, false, "", []string{"metadata at the root: failed: SELF" + meta + ": HTTP 404"}},
		"not at the path":         {challenge, map[string]string{meta: good}, false, "", []string{"metadata at the path: failed: SELF" + meta + "/mcp: HTTP 404"}},
		"another one at the root": {challenge, map[string]string{meta + "/mcp": good, meta: strings.Replace(good, "/mcp", "", 1)}, false, "", []string{"metadata at the root: failed: SELF" + meta + " names another resource"}},
		"of another resource":     {challenge, map[string]string{meta + "/mcp": strings.Replace(good, "/mcp", "/", 1), meta: strings.Replace(good, "/mcp", "/", 1)}, false, "", []string{"resource: failed: the resource is SELF/, and the URL is SELF/mcp"}},
		"no slash":                {challenge, both, true, "", []string{"a slash at the end: failed: /mcp/ answers HTTP 404, and the URL HTTP 401"}},
		"another audience":        {challenge, both, false, token(`["a","b"]`), []string{"audience: failed: the token is for a, b, and the resource is SELF/mcp"}},
		"its audience":            {challenge, both, false, token(`"SELF/mcp"`), nil},
	} {
		var self string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			document, ok := test.documents[r.URL.Path]
			switch {
			case ok:
				_, _ = io.WriteString(w, strings.ReplaceAll(document, "SELF", self))
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
		if n := strings.Count(got[strings.Index(got, "connector: address"):], ": failed: "); n != 1+len(test.failed) {
			t.Errorf("%s: %d steps have failed:\n%s", name, n-1, got)
		}
		for _, line := range test.failed {
			wantLines(t, name+"\n"+got, "connector: "+line)
		}
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
