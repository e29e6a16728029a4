package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damages are what may become of a file of the index.
var damages = map[string]func(file string) error{
	"garbage":   func(file string) error { return os.WriteFile(file, []byte(strings.Repeat("garbage ", 10_000)), 0o600) },
	"truncated": func(file string) error { return os.Truncate(file, 0) },
	"removed":   os.Remove,
	"overwritten": func(file string) error {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil {
			_, err = f.WriteAt([]byte(strings.Repeat("garbage ", int(info.Size()/16))), 0)
		}
		return err
	},
}

// spoil damages all files of the index.
func (w *world) spoil(damage func(file string) error) {
	w.Helper()
	err := filepath.WalkDir(filepath.Join(w.state, "index"), func(file string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != "state" {
			err = damage(file)
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

// A damaged index is made anew, and the agent notices no more than a warning: when it was
// damaged while no daemon ran, or while one runs.
func TestDamagedIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, while := range map[string]string{"garbage": "stopped", "overwritten": "stopped", "truncated": "running", "removed": "running"} {
		t.Run(name+" while "+while, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.agent()
			w.ready(s)
			if while == "stopped" {
				w.stop()
			}
			w.spoil(damages[name])
			w.ready(s)
			w.write("new.txt", "an okapi arrives\n")
			w.eventually("what is new is found", func() bool {
				var got answer
				err := call(t.Context(), s, "search", map[string]any{"query": "okapi"}, &got)
				return err == nil && len(got.Results) == 1
			})
			w.ready(s)
		})
	}
}

// A folder that vanishes keeps its documents in the index, with a warning, and is kept
// up to date again when it returns.
func TestFolderVanishesAndReturns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.agent()
	w.ready(s)
	if err := os.Rename(w.docs, w.docs+".away"); err != nil {
		t.Fatal(err)
	}
	var got answer
	w.eventually("the agent is told", func() bool {
		got = answer{}
		if err := call(t.Context(), s, "search", map[string]any{"query": word(5)}, &got); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(fmt.Sprint(got.Warnings), "gone")
	})
	if len(got.Results) != 1 {
		t.Errorf("without the folder the search finds %v, want what was indexed", got.Results)
	}
	if err := os.Rename(w.docs+".away", w.docs); err != nil {
		t.Fatal(err)
	}
	w.write("back.txt", "the axolotl returns\n")
	w.eventually("the folder is followed again", func() bool {
		got = answer{}
		err := call(t.Context(), s, "search", map[string]any{"query": "axolotl"}, &got)
		return err == nil && len(got.Results) == 1 && len(got.Warnings) == 0
	})
}

// The state directory cannot be written: the agent is told which, and why.
func TestStateDirectoryCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.agentIn("/proc/docsearch")
	if err := find(t.Context(), s, 1); err == nil || !strings.Contains(err.Error(), "/proc/docsearch") {
		t.Errorf("got %v, want an error that names the state directory", err)
	}
}
