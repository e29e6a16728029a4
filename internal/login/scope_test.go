package login

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// The command for a scope that a login lacks asks for those of the login too: without them the next tool would ask for
// those.
func TestCommandForAScopeKeepsTheOthers(t *testing.T) {
	w := newWorld(t, func(w *world) { w.scopes = []string{"read", "list"} })
	o := w.options(t)
	w.mustLogIn(t, o)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Command: "sse-server login X"}
	challenge := http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="write list"`}}
	_, full, _, _ := c.Advise(t.Context(), &http.Response{StatusCode: http.StatusForbidden, Header: challenge}, false)
	want := "lacks the scope write list: run in a terminal: sse-server login X --scope read --scope list --scope write"
	if !strings.HasSuffix(full, want) {
		t.Errorf("got %q, want %q at its end", full, want)
	}
}
