package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A damaged index is made anew, and the agent notices no more than a warning.
func TestDamagedIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(file string) error{
		"garbage":   func(file string) error { return os.WriteFile(file, []byte(strings.Repeat("garbage ", 10_000)), 0o600) },
		"truncated": func(file string) error { return os.Truncate(file, 5000) },
		"overwritten": func(file string) error {
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			for at := int64(4096); err == nil && at < info.Size(); at += 4096 {
				_, err = f.WriteAt([]byte(strings.Repeat("garbage ", 512)), at)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.agent()
			w.ready(s)
			// The daemon is not killed: its log would repair what is damaged here.
			w.stop()
			if err := damage(filepath.Join(w.state, "index.db")); err != nil {
				t.Fatal(err)
			}
			w.ready(s)
			log, err := os.ReadFile(filepath.Join(w.state, "daemon.log"))
			if err != nil || !strings.Contains(string(log), "made anew") {
				t.Errorf("the log does not tell of the damage: %v, %s", err, log)
			}
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
