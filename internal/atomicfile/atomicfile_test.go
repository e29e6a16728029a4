//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// ways are the ways to write a file that has "old", unless isNew is set: then it is not there.
var ways = map[string]struct {
	isNew bool
	write func(d disk, path string) error
}{
	"Write":        {false, func(d disk, path string) error { return d.write(path, []byte("new")) }},
	"Write anew":   {true, func(d disk, path string) error { return d.write(path, []byte("new")) }},
	"Create":       {true, func(d disk, path string) error { return d.create(path, []byte("new")) }},
	"Replace":      {false, replaceWith("new")},
	"Replace anew": {true, replaceWith("new")},
}

func replaceWith(text string) func(disk, string) error {
	return func(d disk, path string) error {
		was, err := Read(path)
		if err != nil {
			return err
		}
		return d.replace(was, []byte(text))
	}
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	ssetest.Must(t, os.WriteFile(path, []byte(text), mode))
	ssetest.Must(t, os.Chmod(path, mode))
}

// textOf returns what is in a file, in brackets; "none" if there is none.
func textOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	ssetest.Must(t, err)
	return "[" + string(data) + "]"
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ssetest.Must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// The data is on the disk before the file has its name, and then its name is. Nothing else is left.
func TestFileIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			path, before := filepath.Join(t.TempDir(), "file"), "none"
			if !way.isNew {
				write(t, path, "old", 0o600)
				before = "[old]"
			}
			var synced []string
			ssetest.Must(t, way.write(disk{func(f *os.File) error {
				info, err := f.Stat()
				what := "the folder"
				if err == nil && !info.IsDir() {
					what = "the data " + textOf(t, f.Name())
				}
				synced = append(synced, fmt.Sprintf("%s while the file is %s", what, textOf(t, path)))
				return errors.Join(err, f.Sync())
			}}, path))
			ssetest.Want(t, "what is synced", synced, []string{"the data [new] while the file is " + before, "the folder while the file is [new]"})
			ssetest.Want(t, "the folder", namesIn(t, filepath.Dir(path)), []string{"file"})
		})
	}
}

// A file that does not get to the disk leaves all as it was.
func TestFailedWriteLeavesWhatWasThere(t *testing.T) {
	for name, way := range ways {
		path, want, names := filepath.Join(t.TempDir(), "file"), "none", []string(nil)
		if !way.isNew {
			write(t, path, "old", 0o600)
			want, names = "[old]", []string{"file"}
		}
		err := way.write(disk{func(*os.File) error { return syscall.EIO }}, path)
		ssetest.Want(t, name+": the error is that of the disk", errors.Is(err, syscall.EIO), true)
		ssetest.Want(t, name+": the file", textOf(t, path), want)
		ssetest.Want(t, name+": the folder", namesIn(t, filepath.Dir(path)), names)
	}
}

// A file of this program is for its user alone. It takes the place of a link; what the link leads to stays.
func TestWriteIsForOneUser(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "file"), filepath.Join(dir, "target")
	for what, prepare := range map[string]func(){
		"a file of all": func() { write(t, path, "old", 0o666) },
		"a link":        func() { write(t, target, "other", 0o644); ssetest.Must(t, os.Symlink(target, path)) },
		"nothing":       func() {},
	} {
		_ = os.Remove(path)
		prepare()
		ssetest.Must(t, Write(path, []byte("new")))
		info, err := os.Lstat(path)
		ssetest.Must(t, err)
		ssetest.Want(t, what+": the mode", info.Mode(), fs.FileMode(0o600))
		ssetest.Want(t, what+": the file", textOf(t, path), "[new]")
	}
	ssetest.Want(t, "what the link led to", textOf(t, target), "[other]")
}

// Create leaves what has the name, also a link that leads nowhere.
func TestCreateReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	ssetest.Must(t, Create(path, []byte("first")))
	ssetest.Must(t, os.Symlink(filepath.Join(dir, "none"), link))
	for _, name := range []string{path, link} {
		err := Create(name, []byte("second"))
		ssetest.Want(t, name+": it is there already", errors.Is(err, fs.ErrExist), true)
	}
	ssetest.Want(t, "the file", textOf(t, path), "[first]")
	ssetest.Want(t, "the folder", namesIn(t, dir), []string{"file", "link"})
}

// A file of others keeps what makes it theirs.
func TestReplaceKeepsTheKindOfFile(t *testing.T) {
	for what, test := range map[string]struct {
		before, text, after string
		mode                fs.FileMode
	}{
		"its mode":                        {"old", "new", "new", 0o644},
		"a mode of the owner alone":       {"old", "new", "new", 0o600},
		"its line ends":                   {"a\r\nb\r\n", "a\r\nc\nd\n", "a\r\nc\r\nd\r\n", 0o640},
		"line ends of both kinds":         {"a\r\nb\n", "c\nd\r\n", "c\nd\r\n", 0o640},
		"its byte order mark":             {"\ufeffold", "new", "\ufeffnew", 0o600},
		"its byte order mark, line ends":  {"\ufeffa\r\n", "b\n", "\ufeffb\r\n", 0o600},
		"an empty file is without a mark": {"", "new\n", "new\n", 0o600},
	} {
		dir := t.TempDir()
		path, link, between := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "between")
		write(t, path, test.before, test.mode)
		ssetest.Must(t, os.Symlink("file", between))
		ssetest.Must(t, os.Symlink(between, link))
		was, err := Read(link)
		ssetest.Must(t, err)
		ssetest.Want(t, what+": the text", string(was.Text()), strings.TrimPrefix(test.before, "\ufeff"))
		ssetest.Must(t, was.Replace(was.WithItsLineEnds([]byte(test.text))))
		ssetest.Want(t, what, textOf(t, path), "["+test.after+"]")
		info, err := os.Lstat(path)
		ssetest.Must(t, err)
		ssetest.Want(t, what+": the mode", info.Mode(), test.mode)
		to, err := os.Readlink(link)
		ssetest.Want(t, what+": the link leads to", fmt.Sprint(to, err), between+"<nil>")
	}
}

// A file with more names is told, and the others keep what they had.
func TestReplaceLeavesOtherNames(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "file"), filepath.Join(dir, "backup")
	write(t, path, "old", 0o600)
	ssetest.Must(t, os.Link(path, backup))
	was, err := Read(path)
	ssetest.Must(t, err)
	ssetest.Want(t, "its names", was.Names, uint64(2))
	ssetest.Must(t, was.Replace([]byte("new")))
	ssetest.Want(t, "the file and the backup", textOf(t, path)+textOf(t, backup), "[new][old]")
}

// A file of another user, as root writes it with sudo, stays that user's.
func TestReplaceKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root writes files of others")
	}
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "old", 0o600)
	ssetest.Must(t, os.Chown(path, 4711, 4712))
	ssetest.Must(t, replaceWith("new")(system, path))
	info, err := os.Stat(path)
	ssetest.Must(t, err)
	is := info.Sys().(*syscall.Stat_t)
	ssetest.Want(t, "the owner", [2]uint32{is.Uid, is.Gid}, [2]uint32{4711, 4712})
}

// A change that somebody else has made since the file was read stays.
func TestReplaceFailsIfTheFileHasChanged(t *testing.T) {
	for what, test := range map[string]struct {
		isNew  bool
		change func(path string) error
		want   string // what is in the file after it
		err    error
	}{
		"nothing":             {false, func(string) error { return nil }, "[new]", nil},
		"nothing, to no file": {true, func(string) error { return nil }, "[new]", nil},
		"the same again":      {false, func(path string) error { return os.WriteFile(path, []byte("old"), 0o600) }, "[new]", nil},
		"another text":        {false, func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) }, "[other]", ErrChanged},
		"it is gone":          {false, os.Remove, "none", ErrChanged},
		"it is there now":     {true, func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) }, "[other]", ErrChanged},
		"it is there, empty":  {true, func(path string) error { return os.WriteFile(path, nil, 0o600) }, "[]", ErrChanged},
		"others made it after": {false, func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("other"), 0o600))
		}, "[other]", ErrChanged},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if !test.isNew {
			write(t, path, "old", 0o600)
		}
		was, err := Read(path)
		ssetest.Must(t, err)
		ssetest.Want(t, what+": it was there", was.IsThere(), !test.isNew)
		ssetest.Must(t, test.change(path))
		err = was.Replace([]byte("new"))
		ssetest.Want(t, what+": the error is the one that is meant", errors.Is(err, test.err), true)
		ssetest.Want(t, what+": the file", textOf(t, path), test.want)
		ssetest.Want(t, what+": what is left", slices.ContainsFunc(namesIn(t, filepath.Dir(path)), func(name string) bool {
			return strings.HasPrefix(name, Unfinished)
		}), false)
	}
}

// A path that leads to no file that can be replaced is refused before anything is written.
func TestReadRefusesWhatCannotBeReplaced(t *testing.T) {
	dir := t.TempDir()
	readOnly, dangling := filepath.Join(dir, "read-only"), filepath.Join(dir, "dangling")
	write(t, readOnly, "old", 0o400)
	ssetest.Must(t, os.Symlink(filepath.Join(dir, "none"), dangling))
	for path, want := range map[string]string{
		dir:      "is not a regular file",
		readOnly: "is read-only: let its owner write it first",
		dangling: "is a link to a file that is not there: make that, or remove the link",
	} {
		_, err := Read(path)
		ssetest.WantText(t, path, fmt.Sprint(err), want)
	}
}
