package clientfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const address = "http://127.0.0.1:8080/mcp"

func named(t *testing.T, name string) clients.Client {
	t.Helper()
	c, known := clients.Named(name)
	if !known {
		t.Fatalf("there is no client %s", name)
	}
	return c
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	ssetest.Must(t, err)
	return string(data)
}

// Programs that write at once leave the entries of all.
func TestTwelveWritersLeaveTwelveEntries(t *testing.T) {
	for _, name := range []string{"cursor", "codex", "continue"} {
		c, dir, file := named(t, name), t.TempDir(), filepath.Join(t.TempDir(), "file")
		var all sync.WaitGroup
		wrong := make([]error, 12)
		for i := range wrong {
			all.Go(func() {
				w, err := NewEditor(dir).Write(c, file, []clients.Server{{Name: fmt.Sprintf("s%d", i), URL: address}}, false)
				if err == nil && len(w.Added) != 1 {
					err = fmt.Errorf("it says %+v", w)
				}
				wrong[i] = err
			})
		}
		all.Wait()
		ssetest.Must(t, errors.Join(wrong...))
		for i := range wrong {
			if _, there, err := formOf(c.Entry).entry([]byte(contentOf(t, file)), fmt.Sprintf("s%d", i)); !there || err != nil {
				t.Errorf("%s: s%d is missing (%v)", name, i, err)
			}
		}
	}
}

// A change that a client writes meanwhile is not lost.
func TestWriteLooksAgain(t *testing.T) {
	c, file := named(t, "cursor"), filepath.Join(t.TempDir(), "mcp.json")
	ssetest.Must(t, os.WriteFile(file, []byte(`{"mcpServers": {}}`), 0o600))
	e, changes := NewEditor(t.TempDir()), 0
	e.looks = func() {
		if changes++; changes < 3 {
			ssetest.Must(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {}, "theme": %d}`, changes), 0o600))
		}
	}
	_, err := e.Write(c, file, []clients.Server{{Name: "docs", URL: address}}, false)
	ssetest.Must(t, err)
	if got := contentOf(t, file); !strings.Contains(got, `"theme": 2`) || !strings.Contains(got, address) {
		t.Errorf("got %s", got)
	}
	e.looks = func() {
		changes++
		ssetest.Must(t, os.WriteFile(file, fmt.Appendf(nil, `{"theme": %d}`, changes), 0o600))
	}
	_, err = e.Write(c, file, []clients.Server{{Name: "other", URL: address}}, false)
	ssetest.WantText(t, "the error", fmt.Sprint(err), "another program changes it all the time")
}

// A file keeps its line ends, its mode and the link that leads to it; a copy of what was there is for this user alone.
func TestWriteKeepsTheKindOfFile(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	for name, before := range map[string]string{
		"cursor":   "{\r\n  // mine\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"x\", \"env\": {\"KEY\": \"s3cret\"}}\r\n  }\r\n}\r\n",
		"codex":    "model = \"x\"\r\n\r\n[mcp_servers.a]\r\ncommand = \"s3cret\"\r\n",
		"continue": "name: x\r\nmcpServers:\r\n  - name: a\r\n    command: s3cret\r\n",
	} {
		c, file, link := named(t, name), filepath.Join(dir, name), filepath.Join(dir, name+"-link")
		ssetest.Must(t, os.WriteFile(file, []byte(before), 0o640))
		ssetest.Must(t, os.Chmod(file, 0o640))
		ssetest.Must(t, os.Symlink(file, link))
		_, err := NewEditor(state).Write(c, link, []clients.Server{{Name: "docs", URL: address}}, false)
		ssetest.Must(t, err)
		after := contentOf(t, file)
		if n := strings.Count(after, "\n"); n != strings.Count(after, "\r\n") || !strings.Contains(after, address) {
			t.Errorf("%s: got %q", name, after)
		}
		info, err := os.Stat(file)
		ssetest.Must(t, err)
		ssetest.Want(t, "the mode", info.Mode().Perm(), os.FileMode(0o640))
		if to, err := os.Readlink(link); err != nil || to != file {
			t.Errorf("%s: the link leads to %s (%v)", name, to, err)
		}
		copied := NewEditor(state).path(link, ".copy")
		ssetest.Want(t, "the copy", contentOf(t, copied), before)
		for _, kept := range []string{copied, NewEditor(state).path(link, ".json")} {
			info, err = os.Stat(kept)
			ssetest.Must(t, err)
			ssetest.Want(t, "its mode", info.Mode().Perm(), os.FileMode(0o600))
		}
		left, err := filepath.Glob(filepath.Join(dir, atomicfile.Unfinished+"*"))
		ssetest.Must(t, err)
		ssetest.Want(t, "what is left", len(left), 0)
	}
}

// An entry that has more than a URL is taken over if that is wanted, and comes back as it was. A change that somebody
// has made since stays.
func TestUndoRestoresEntries(t *testing.T) {
	for name, before := range map[string]string{
		"cursor":   "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"url\": \"x\"},\n    // why\n    \"docs\": {\"command\": \"npx\", \"args\": [\"-y\", \"docs\"], /* key */ \"env\": {\"KEY\": \"1\"}},\n    \"z\": {\"url\": \"y\"}\n  },\n  \"theme\": 1,\n}\n",
		"codex":    "model = \"x\"\n\n[mcp_servers.a]\nurl = \"x\"\n\n# why\n[mcp_servers.docs]\ncommand = \"npx\" # key\nargs = [\"-y\", \"docs\"]\n\n[mcp_servers.docs.env]\nKEY = \"1\"\n\n[mcp_servers.z]\nurl = \"y\"\n\n[profiles.docs]\nb = 1\n",
		"continue": "name: x\nmcpServers:\n  - name: a\n    url: x\n  # why\n  - name: docs\n    command: npx # key\n    args: [-y, docs]\n    env:\n      KEY: \"1\"\n\n  # last\n  - name: z\n    url: y\nversion: 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, file, e := named(t, name), filepath.Join(t.TempDir(), "file"), NewEditor(t.TempDir())
			ssetest.Must(t, os.WriteFile(file, []byte(before), 0o600))
			ours := []clients.Server{{Name: "docs", URL: address}, {Name: "new", URL: address}}
			_, err := e.Write(c, file, ours, false)
			ssetest.WantText(t, "the error", fmt.Sprint(err), "--replace takes it over")
			ssetest.Want(t, "the file", contentOf(t, file), before)
			for _, port := range []string{"8080", "9090"} { // the second time it is ours
				ours[0].URL = strings.Replace(address, "8080", port, 1)
				w, err := e.Write(c, file, ours, true)
				ssetest.Must(t, err)
				if !slices.Contains(append(w.Taken, w.Replaced...), "docs") || strings.Contains(contentOf(t, file), "npx") {
					t.Errorf("got %+v\n%s", w, contentOf(t, file))
				}
			}
			u, err := e.Undo(c, file, "")
			ssetest.Must(t, err)
			ssetest.Want(t, "undone", u, Undone{Restored: []string{"docs"}, Removed: []string{"new"}})
			if got := contentOf(t, file); got != before {
				t.Errorf("got\n%s\nwant\n%s", got, before)
			}
			_, err = e.Undo(c, file, "")
			ssetest.WantText(t, "the error", fmt.Sprint(err), "sse-server has changed nothing in it that could be restored")

			ssetest.Must(t, os.WriteFile(file, []byte(before), 0o600))
			ours[0].URL = address
			_, err = e.Write(c, file, ours, true)
			ssetest.Must(t, err)
			changed := strings.Replace(contentOf(t, file), address, address+"?by=hand", 1) // that of docs
			ssetest.Must(t, os.WriteFile(file, []byte(changed), 0o600))
			u, err = e.Undo(c, file, "")
			ssetest.Must(t, err)
			if got := contentOf(t, file); !slices.Equal(u.Changed, []string{"docs"}) || !slices.Equal(u.Removed, []string{"new"}) || !strings.Contains(got, "?by=hand") || strings.Contains(got, "new") {
				t.Errorf("got %+v\n%s", u, got)
			}
		})
	}
}

// A record has both texts of each entry.
func TestRecordHasWhatWasThere(t *testing.T) {
	c, file, e := named(t, "cursor"), filepath.Join(t.TempDir(), "mcp.json"), NewEditor(t.TempDir())
	ssetest.Must(t, os.WriteFile(file, []byte(`{"mcpServers": {"docs": {"command": "x"}}}`), 0o600))
	_, err := e.Write(c, file, []clients.Server{{Name: "docs", URL: address}}, true)
	ssetest.Must(t, err)
	var r record
	ssetest.Must(t, json.Unmarshal([]byte(contentOf(t, e.path(file, ".json"))), &r))
	if one := r.Entries["docs"]; one.Before == nil || *one.Before != `{"command": "x"}` || !strings.Contains(one.After, address) {
		t.Errorf("got %+v", r)
	}
}
