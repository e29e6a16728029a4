package login

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A server is named without its query, and found by that name while a program waits for a login there, or somebody is
// logged in there.
func TestServersByName(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	o.Server += "?key=s3cret"
	state := filepath.Dir(o.Store.dir)
	c := Credentials{StateDir: state, Server: o.Server}
	name := Name(o.Server)
	if strings.Contains(name, "s3cret") || !strings.HasPrefix(name, w.url()+"#") {
		t.Errorf("the server is named %s", name)
	}
	find := func(when, name, want string) {
		t.Helper()
		got, err := URLOf(state, name)
		ssetest.Want(t, when, got, want)
		ssetest.Want(t, when+": unknown", errors.Is(err, ErrUnknownName), want == "")
	}
	find("before anybody asks", name, "")
	challenge := http.Header{"Www-Authenticate": {`Bearer resource_metadata="http://x"`}}
	_, _, _, _ = c.Advise(t.Context(), &http.Response{StatusCode: http.StatusUnauthorized, Header: challenge}, false)
	find("while it waits", name, o.Server)
	find("another place with its hash", strings.Replace(name, "/mcp#", "/x#", 1), "")
	find("a URL", w.url(), w.url())
	find("a URL with a fragment", w.url()+"#top", w.url()+"#top")
	info, err := os.Stat(o.Store.nameFile(hash(o.Server)))
	ssetest.Must(t, err)
	ssetest.Want(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
	l := w.mustLogIn(t, o)
	find("while somebody is logged in", name, o.Server)
	ssetest.Must(t, o.Store.Forget(l))
	find("after a logout", name, "")
	ssetest.Want(t, "name of a URL without a query", Name(w.url()), w.url())
}
