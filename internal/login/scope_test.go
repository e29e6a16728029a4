package login

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A server answers initialize to anybody, and refuses another message: the login asks for the scopes that this refusal
// names, and reads the metadata that it names, instead of those for all of the server.
func TestLoginHasTheScopesOfTheMessageThatWasRefused(t *testing.T) {
	for name, test := range map[string]struct {
		set       func(*world)
		challenge string // of the message; SERVER is the address of the server
		scope     string // of the login
	}{
		"named by the message":  {func(*world) {}, `Bearer scope="basic"`, "basic offline_access"},
		"named by the metadata": {func(*world) {}, `Bearer`, "all offline_access"},
		"initialize is refused too": {func(w *world) { w.isOpen, w.challenge = false, `scope="first"` }, `Bearer scope="basic"`,
			"first offline_access"},
		"the metadata are where the message says": {func(w *world) { w.noWellKnown = true },
			`Bearer resource_metadata="SERVER/metadata", scope="basic"`, "basic offline_access"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				w.isOpen, w.scopes = true, []string{"all"}
				test.set(w)
			})
			o := w.options(t)
			c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Command: "sse-server login X", Links: true}
			header := http.Header{"Www-Authenticate": {strings.ReplaceAll(test.challenge, "SERVER", w.server.URL)}}
			_, _, _, link := c.Advise(t.Context(), &http.Response{StatusCode: http.StatusUnauthorized, Header: header}, true)
			if link == "" {
				link, _, _ = c.Begin(t.Context())
			}
			t.Cleanup(giveUpAll)
			at, err := url.Parse(link)
			ssetest.Must(t, err)
			ssetest.Want(t, "scope", at.Query().Get("scope"), test.scope)
		})
	}
}

// The command for a scope that a login lacks asks for those of the login too: without them the next tool would ask for
// those.
func TestCommandForAScopeKeepsTheOthers(t *testing.T) {
	w := newWorld(t, func(w *world) { w.scopes = []string{"read", "list"} })
	o := w.options(t)
	w.mustLogIn(t, o)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Command: "sse-server login X"}
	challenge := http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="write list"`}}
	_, full, _, _ := c.Advise(t.Context(), &http.Response{StatusCode: http.StatusForbidden, Header: challenge}, false)
	want := `lacks the scope "write list": run in a terminal: sse-server login X --scope read --scope list --scope write`
	if !strings.HasSuffix(full, want) {
		t.Errorf("got %q, want %q at its end", full, want)
	}
}
