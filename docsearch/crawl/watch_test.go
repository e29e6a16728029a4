package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// fakeNotifier notes what is watched. A test sends the events.
type fakeNotifier struct {
	folder string
	events chan fsnotify.Event
	errs   chan error

	mu      sync.Mutex
	watched map[string]bool
	most    int // watches, ENOSPC beyond
	closed  bool
	refused string // relative path that may not be watched
}

func (n *fakeNotifier) add(path string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused != "" && path == filepath.Join(n.folder, n.refused) {
		return syscall.EACCES
	}
	if len(n.watched) >= n.most && !n.watched[path] {
		return syscall.ENOSPC
	}
	n.watched[path] = true
	return nil
}

func (n *fakeNotifier) remove(path string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.watched, path)
	return nil
}

func (n *fakeNotifier) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		close(n.events)
	}
	n.closed = true
	return nil
}

// watchTest is a folder that is watched with a fake notifier.
type watchTest struct {
	*testing.T
	folder *Folder
	*Watcher
	*fakeNotifier
}

// inBubble runs a test with time that passes when all wait, and at most so many watches.
func inBubble(t *testing.T, f *Folder, most int, test func(w *watchTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNotifier{folder: f.Path(), events: make(chan fsnotify.Event), errs: make(chan error), watched: make(map[string]bool), most: most}
		f.notify = func() (notifier, error) { return notifier{n.add, n.remove, n.close, n.events, n.errs}, nil }
		ctx, cancel := context.WithCancel(t.Context())
		w, err := f.Watch(ctx)
		must(t, err)
		run := &watchTest{t, f, w, n}
		run.look(".")
		test(run)
		cancel()
		w.Wait()
		if _, open := <-w.Changes(); open || !n.closed {
			t.Errorf("after the end the channel is open: %t, the notifier closed: %t", open, n.closed)
		}
	})
}

// send sends the event of a relative path.
func (w *watchTest) send(op fsnotify.Op, rel string) {
	w.events <- fsnotify.Event{Name: filepath.Join(w.folder.Path(), rel), Op: op}
}

// look walks, as one does who is told of a change.
func (w *watchTest) look(at string) { walkedBut(w.T, w.folder, at) }

// wantChanges checks the next changes, and looks at them.
func (w *watchTest) wantChanges(want ...string) {
	w.Helper()
	got := <-w.Changes()
	if !slices.Equal(got, want) {
		w.Errorf("got %q, want %q", got, want)
	}
	for _, at := range got {
		w.look(at)
	}
}

func (w *watchTest) wantWatched(want ...string) {
	w.Helper()
	w.fakeNotifier.mu.Lock()
	defer w.fakeNotifier.mu.Unlock()
	var got []string
	for path := range w.fakeNotifier.watched {
		rel, _ := filepath.Rel(w.folder.Path(), path)
		got = append(got, rel)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		w.Errorf("watched %q, want %q", got, want)
	}
}

func TestChangesComeTogether(t *testing.T) {
	dir := tree(t, "a", "b", "sub/c")
	inBubble(t, openFolder(t, dir, Options{}), 100, func(w *watchTest) {
		began := time.Now()
		for _, rel := range []string{"b", "a", "b", "sub/c"} {
			w.send(fsnotify.Write, rel)
			time.Sleep(quiet / 2)
		}
		w.wantChanges("a", "b", "sub/c")
		if got := time.Since(began); got != 3*quiet/2+quiet {
			t.Errorf("reported after %v", got)
		}
		w.send(fsnotify.Write, "a")
		w.wantChanges("a")
	})
}

func TestChangesWithoutAPauseAreReportedInTime(t *testing.T) {
	inBubble(t, openFolder(t, tree(t, "a"), Options{}), 100, func(w *watchTest) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		var writer sync.WaitGroup
		writer.Go(func() {
			for ctx.Err() == nil {
				w.send(fsnotify.Write, "a")
				time.Sleep(quiet / 2)
			}
		})
		began := time.Now()
		w.wantChanges("a")
		if got := time.Since(began); got > longest+quiet {
			t.Errorf("reported after %v, want at most %v", got, longest)
		}
		cancel()
		writer.Wait()
	})
}

func TestSlowReaderGetsAllChangesAtOnce(t *testing.T) {
	inBubble(t, openFolder(t, tree(t), Options{}), 100, func(w *watchTest) {
		for i := range 5 {
			w.send(fsnotify.Remove, fmt.Sprint("file", i))
			time.Sleep(10 * time.Second)
		}
		w.wantChanges("file0", "file1", "file2", "file3", "file4")
		for i := range maxPending + 1 {
			w.send(fsnotify.Remove, fmt.Sprint("file", i))
		}
		w.send(fsnotify.Remove, "more")
		w.wantChanges(".")
	})
}

func TestNewDirectoriesAreWatched(t *testing.T) {
	dir := tree(t, "old/a", ".git/objects/", "out/x/")
	write(t, dir, ".gitignore", "out/\n*.tmp\n")
	inBubble(t, openFolder(t, dir, Options{}), 100, func(w *watchTest) {
		w.wantWatched(".", "old")
		write(t, dir, "new/deep/file", "")
		w.send(fsnotify.Create, "new")
		w.wantChanges("new")
		w.wantWatched(".", "new", "new/deep", "old")

		write(t, dir, "x.tmp", "")
		write(t, dir, "out/y", "")
		w.send(fsnotify.Create, ".git")
		w.send(fsnotify.Create, "out") // what is ignored is not watched
		must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "moved")))
		w.send(fsnotify.Rename, "new")
		w.send(fsnotify.Create, "moved")
		w.wantChanges("moved", "new", "out")
		w.wantWatched(".", "moved", "moved/deep", "old")

		write(t, dir, ".gitignore", "*.tmp\n")
		w.send(fsnotify.Write, ".gitignore")
		w.wantChanges(".")
		w.wantWatched(".", "moved", "moved/deep", "old", "out", "out/x")
	})
}

func TestTooManyDirectoriesToWatch(t *testing.T) {
	var log bytes.Buffer
	f := openFolder(t, tree(t, "a/", "b/", "c/"), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	inBubble(t, f, 2, func(w *watchTest) {
		began := time.Now()
		w.wantChanges(".")
		w.wantChanges(".")
		if got := time.Since(began); got < 2*poll || got > 2*poll+longest {
			t.Errorf("reported twice after %v, want once per %v", got, poll)
		}
		if !w.closed {
			t.Error("the notifier stays open")
		}
	})
	if got := strings.Count(log.String(), "cannot be watched"); got != 1 {
		t.Errorf("%d warnings, want 1:\n%s", got, &log)
	}
}

func TestLostEvents(t *testing.T) {
	dir := tree(t, "a/")
	inBubble(t, openFolder(t, dir, Options{}), 100, func(w *watchTest) {
		write(t, dir, "unseen/file", "")
		w.errs <- fsnotify.ErrEventOverflow
		w.wantChanges(".")
		w.wantWatched(".", "a", "unseen")
		w.errs <- errors.New("another error")
		w.wantChanges(".")
	})
}

// A folder that goes, or is replaced, ends the watch of the directory that was there.
func TestFolderVanishes(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		dir := tree(t, "folder/a")
		folder := filepath.Join(dir, "folder")
		inBubble(t, openFolder(t, folder, Options{}), 100, func(w *watchTest) {
			must(t, os.Rename(folder, folder+"2"))
			if replaced {
				write(t, folder, "other", "")
			}
			if paths, open := <-w.Changes(); open {
				t.Errorf("got %q, want the end", paths)
			}
		})
	}
}

func TestFolderWithoutNotifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFolder(t, tree(t), Options{})
		f.notify = func() (notifier, error) { return notifier{}, syscall.EMFILE }
		ctx, cancel := context.WithCancel(t.Context())
		w, err := f.Watch(ctx)
		must(t, err)
		walked(t, f, ".")
		if got := <-w.Changes(); !slices.Equal(got, []string{"."}) {
			t.Errorf("got %q", got)
		}
		cancel()
		w.Wait()
	})
}

// TestWatchOfTheSystem changes files as programs do, and waits for the reports.
func TestWatchOfTheSystem(t *testing.T) {
	dir := tree(t, "a.txt", "sub/b.txt", "ignored/c.txt", "gone/d.txt")
	write(t, dir, ".gitignore", "ignored/\n")
	f := openFolder(t, dir, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	w, err := f.Watch(ctx)
	must(t, err)
	defer w.Wait()
	defer cancel()
	walked(t, f, ".")
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"write", func() { write(t, dir, "a.txt", "new") }, []string{"a.txt"}},
		{"save by rename", func() {
			write(t, dir, "sub/.b.swp", "newer")
			must(t, os.Rename(filepath.Join(dir, "sub/.b.swp"), filepath.Join(dir, "sub/b.txt")))
		}, []string{"sub/b.txt"}},
		{"new directories", func() { write(t, dir, "x/y/z.txt", "") }, []string{"x"}},
		{"in the new directory", func() { write(t, dir, "x/y/z.txt", "new") }, []string{"x/y/z.txt"}},
		{"ignored", func() { write(t, dir, "ignored/c.txt", "new"); write(t, dir, "a.txt", "again") }, []string{"a.txt"}},
		{"remove", func() { must(t, os.RemoveAll(filepath.Join(dir, "gone"))) }, []string{"gone"}},
		{"move", func() { must(t, os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "moved"))) }, []string{"moved", "x"}},
		{"in the moved directory", func() { write(t, dir, "moved/y/z.txt", "new") }, []string{"moved/y/z.txt"}},
	} {
		step.do()
		if got := collect(t, w, step.want); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}

// collect returns the changes until all that are wanted came, and looks at them: a busy
// machine may report them in parts.
func collect(t *testing.T, w *Watcher, want []string) []string {
	t.Helper()
	all := make(map[string]bool)
	missing := func(rel string) bool { return !all[rel] }
	for slices.ContainsFunc(want, missing) {
		select {
		case paths := <-w.Changes():
			for _, rel := range paths {
				all[rel] = true
				walkedBut(t, w.folder, rel)
			}
		case <-time.After(time.Minute):
			return outermost(all)
		}
	}
	return outermost(all)
}
