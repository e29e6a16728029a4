package login

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The logout of a login whose file others can read deletes what the server said to it too.
func TestLogoutUnusableDeletesTheMemory(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	l := w.mustLogIn(t, o)
	path, memory := o.Store.path(l.Server, l.Issuer), o.Store.memoryDir(l)
	ssetest.Must(t, os.MkdirAll(memory, 0o700))
	ssetest.Must(t, os.Chmod(path, 0o640))
	all, err := o.Store.Unusable(o.Server)
	ssetest.Must(t, err)
	ssetest.Want(t, "files that are not used", len(all), 1)
	revoked, err := LogoutUnusable(t.Context(), all[0])
	ssetest.Must(t, err)
	ssetest.Want(t, "revoked", revoked, true)
	for _, left := range []string{path, memory} {
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
}
