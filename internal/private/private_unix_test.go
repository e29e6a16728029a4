//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A directory is private if neither it nor one above it is another user's, or open to others.
func TestDirectoriesThatAreNotPrivate(t *testing.T) {
	base := t.TempDir()
	made := func(name string, mode os.FileMode) string {
		dir := filepath.Join(base, name)
		ssetest.Must(t, os.MkdirAll(dir, 0o700))
		ssetest.Must(t, os.Chmod(dir, mode))
		return dir
	}
	shared := made("shared", 0o777)
	ssetest.Must(t, os.Mkdir(filepath.Join(shared, "below"), 0o700))
	sticky := made("sticky", 0o777|os.ModeSticky)
	ssetest.Must(t, os.Mkdir(filepath.Join(sticky, "below"), 0o700))
	file := filepath.Join(base, "file")
	ssetest.Must(t, os.WriteFile(file, nil, 0o600))
	link := func(name, to string) string {
		at := filepath.Join(base, name)
		ssetest.Must(t, os.MkdirAll(filepath.Dir(at), 0o700))
		ssetest.Must(t, os.Symlink(to, at))
		return at
	}
	link("shared/way", made("private", 0o700))
	for dir, want := range map[string]string{
		made("private", 0o700):                       "<nil>",
		made("readable", 0o750):                      "other users can open",
		filepath.Join(shared, "below"):               "all users can write to " + shared,
		link("link", filepath.Join(shared, "below")): "all users can write to " + shared,
		link("link to a link", "shared/way"):         "all users can write to " + shared,
		link("dir/link", "../sticky/../private"):     "<nil>",
		link("loop", "loop"):                         "too many links",
		made("open", 0o777):                          "can write to " + filepath.Join(base, "open"),
		filepath.Join(sticky, "below"):               "<nil>",
		file:                                         "is not a directory",
		filepath.Join(base, "none"):                  "no such file or directory",
	} {
		ssetest.WantText(t, dir, fmt.Sprint(CheckClosed(dir)), want)
	}
	if os.Geteuid() != 0 { // only root can give a directory away; for others root's are foreign
		ssetest.WantText(t, "a directory of root", fmt.Sprint(CheckOwned("/etc")), "belongs to another user (0)")
		return
	}
	foreign := made("foreign", 0o700)
	ssetest.Must(t, os.Mkdir(filepath.Join(foreign, "below"), 0o700))
	ssetest.Must(t, os.Chown(foreign, 4711, 4711))
	ssetest.WantText(t, "a directory of another", fmt.Sprint(CheckClosed(foreign)), "belongs to another user (4711)")
	ssetest.WantText(t, "one below it", fmt.Sprint(CheckClosed(filepath.Join(foreign, "below"))), foreign+" belongs to another user (4711), who can replace")
}

// Nothing that others, or a project, can have in a folder above is found by a program that runs in one that is secluded.
func TestFoldersThatAreNotSecluded(t *testing.T) {
	base := ssetest.PrivateDir(t)
	made := func(mode os.FileMode, elements ...string) string {
		dir := filepath.Join(append([]string{base}, elements...)...)
		ssetest.Must(t, os.MkdirAll(dir, 0o700))
		ssetest.Must(t, os.Chmod(dir, mode))
		return dir
	}
	sticky := made(0o777|os.ModeSticky, "sticky")
	made(0o700, "clone", ".git")
	clone := filepath.Join(base, "clone")
	ssetest.Must(t, os.Symlink(made(0o700, "sticky", "below"), filepath.Join(base, "link")))
	for dir, want := range map[string]string{
		made(0o700, "own"):               "<nil>",
		filepath.Join(sticky, "below"):   "all users can write to " + sticky,
		filepath.Join(base, "link"):      "all users can write to " + sticky,
		made(0o700, "clone", "state"):    clone + " is a project: it has .git",
		made(0o777, "open"):              "all users of this machine can write to",
		filepath.Join(base, "not there"): "no such file",
	} {
		ssetest.WantText(t, dir, fmt.Sprint(CheckSecluded(dir)), want)
	}
	t.Setenv("HOME", clone)
	ssetest.Want(t, "a home directory is a project", strings.Contains(fmt.Sprint(CheckSecluded(filepath.Join(clone, "state"))), clone+" is"), false)
}

// A file is opened only in a folder of this user alone, and not through a link.
func TestOpenFile(t *testing.T) {
	base := t.TempDir()
	victim := filepath.Join(base, "victim")
	ssetest.Must(t, os.WriteFile(victim, []byte("text"), 0o600))
	open := func(path string) string {
		f, err := OpenFile(path, os.O_TRUNC)
		if err == nil {
			err = f.Close()
		}
		return fmt.Sprint(err)
	}
	log := filepath.Join(base, "new", "log")
	ssetest.Want(t, "a new file", open(log), "<nil>")
	ssetest.Want(t, "it, again", open(log), "<nil>")
	info, err := os.Stat(log)
	ssetest.Must(t, err)
	ssetest.Want(t, "its mode", info.Mode(), fs.FileMode(0o600))
	ssetest.Must(t, os.Symlink(victim, filepath.Join(base, "link")))
	ssetest.WantText(t, "a link", open(filepath.Join(base, "link")), "is not a regular file: delete it")
	ssetest.WantText(t, "a directory", open(filepath.Join(base, "new")), "is not a regular file")
	ssetest.Must(t, os.Mkdir(filepath.Join(base, "shared"), 0o700))
	ssetest.Must(t, os.Chmod(filepath.Join(base, "shared"), 0o777))
	ssetest.WantText(t, "in a folder of all", open(filepath.Join(base, "shared", "log")), "can write to")
	data, err := os.ReadFile(victim)
	ssetest.Must(t, err)
	ssetest.Want(t, "what the link leads to", string(data), "text")
}

// Files of nobody are those of another user, unless this namespace has no such user: then they may be root's.
func TestUserOfNoNamespace(t *testing.T) {
	for mapped, want := range map[string]bool{
		"         0          0 4294967295\n":               false,
		"         0       1000          1\n":               true,
		"         0       1000          1\n1 100000 65536": false,
		"": false,
	} {
		if got := isUnmapped(unmapped, mapped); got != want {
			t.Errorf("%q: got %v", mapped, got)
		}
	}
}

// The home directory that the system has for this user is no project, also if a program was given another one.
func TestHomeOfThisUserIsNoProject(t *testing.T) {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	ssetest.Must(t, err)
	info, err := os.Stat(u.HomeDir)
	ssetest.Must(t, err)
	t.Setenv("HOME", t.TempDir())
	ssetest.Want(t, "it is the home directory", isHome(info), true)
}
