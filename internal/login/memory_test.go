package login

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// What a server said to a login is told while that is kept, also once the issuer has ended it, and to no other login,
// principal or place. A logout and the next login delete it.
func TestWhatTheServerSaid(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	clientOf := func(principal, name string) remember.Client {
		client, plain := remember.ClientOf([]byte(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"`+name+`","version":"1"}}`), remember.Principal(principal))
		ssetest.Want(t, "plain", plain, true)
		return client
	}
	said := func(tool string) remember.Answers {
		return remember.Answers{
			Initialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{}}}`,
			Pages:      map[string]map[string]string{"tools/list": {"": `{"tools":[{"name":"` + tool + `"}]}`}}, Learned: time.Now(),
		}
	}
	w := newWorld(t, nil)
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server}
	told := func(when, place string, client remember.Client, want string) {
		t.Helper()
		got := c.Recall(place, client, quiet)
		switch {
		case want == "" && got != nil:
			t.Errorf("%s: it is told %v", when, got)
		case want != "" && got == nil:
			t.Errorf("%s: nothing is told", when)
		case want != "":
			ssetest.WantText(t, when, got.Pages["tools/list"][""], `"name":"`+want+`"`)
		}
	}
	me := clientOf("", "a")
	ssetest.Want(t, "mark before the first login", c.Mark(), "")
	c.Learn("", "here", me, said("nobody"), quiet)
	told("before the first login", "here", me, "")

	w.mustLogIn(t, o)
	c.source().looked = time.Time{}
	first := c.Mark()
	c.Learn(first, "here", me, said("first"), quiet)
	told("to the same client", "here", me, "first")
	told("to another principal", "here", clientOf("eve", "a"), "")
	told("elsewhere", "there", me, "")
	told("to one that calls itself something else", "here", clientOf("", "b"), "")
	more := said("first")
	more.Pages = map[string]map[string]string{"prompts/list": {"": `{"prompts":[]}`}}
	c.Learn(first, "here", me, more, quiet)
	ssetest.Want(t, "lists with those of another session", len(c.Recall("here", me, quiet).Pages), 2)
	_ = filepath.WalkDir(o.Store.dir, func(path string, d fs.DirEntry, err error) error {
		ssetest.Must(t, err)
		info, err := d.Info()
		ssetest.Must(t, err)
		if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		if data, err := os.ReadFile(path); err == nil && strings.Contains(path, memorySuffix) {
			w.wantNoSecret(t, path, string(data))
		}
		return nil
	})
	other := Credentials{StateDir: c.StateDir, Server: o.Server + "/other"}
	if got := other.Recall("here", me, quiet); got != nil {
		t.Errorf("another server says %v", got)
	}

	change(t, o, func(l *Login) { l.Ended, l.Refresh = time.Now(), "" })
	ssetest.Want(t, "logged in", c.LoggedIn(), false)
	ssetest.Want(t, "the same login", c.Mark(), first)
	told("after the end of the login", "here", me, "first")

	l := w.mustLogIn(t, o)
	told("to the next login", "here", me, "")
	c.Learn(first, "here", me, said("first"), quiet)
	told("to the next login, of the one before", "here", me, "")
	c.Learn(c.Mark(), "here", me, said("second"), quiet)
	told("to the next login, of itself", "here", me, "second")

	_, err := Logout(t.Context(), o.Store, l)
	ssetest.Must(t, err)
	told("after a logout", "here", me, "")
	if left, _ := filepath.Glob(filepath.Join(o.Store.dir, "*"+memorySuffix)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
