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
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	if len(n.watched) >= n.most {
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
	n.closed = true
	return nil
}

// send sends the event of a relative path.
func (n *fakeNotifier) send(op fsnotify.Op, rel string) {
	n.events <- fsnotify.Event{Name: filepath.Join(n.folder, rel), Op: op}
}

// paths returns what is watched, relative.
func (n *fakeNotifier) paths() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for path := range n.watched {
		rel, _ := filepath.Rel(n.folder, path)
		all = append(all, rel)
	}
	slices.Sort(all)
	return all
}

// watchFake watches dir in a bubble, with at most so many watches. latest returns the
// notifier that is in use.
func watchFake(t *testing.T, dir string, most int, o Options) (changes <-chan []string, latest func() *fakeNotifier) {
	t.Helper()
	return watchFolder(t, openFolder(t, dir, o), most)
}

// watchFolder is watchFake for an open folder.
func watchFolder(t *testing.T, f *Folder, most int) (changes <-chan []string, latest func() *fakeNotifier) {
	t.Helper()
	var current *fakeNotifier
	f.notify = func() (notifier, error) {
		current = &fakeNotifier{folder: f.Path(), events: make(chan fsnotify.Event), errs: make(chan error), watched: make(map[string]bool), most: most}
		return notifier{current.add, current.remove, current.close, current.events, current.errs}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := f.Watch(ctx)
	must(t, err)
	t.Cleanup(func() {
		cancel()
		w.Wait()
		if !current.closed {
			t.Error("the notifier is not closed")
		}
		if _, open := <-w.Changes(); open {
			t.Error("the channel is not closed")
		}
	})
	return w.Changes(), func() *fakeNotifier { return current }
}

// inBubble runs a test with time that passes when all wait.
func inBubble(t *testing.T, dir string, most int, o Options, test func(t *testing.T, changes <-chan []string, latest func() *fakeNotifier)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		changes, latest := watchFake(t, dir, most, o)
		test(t, changes, latest)
	})
}

func wantChanges(t *testing.T, changes <-chan []string, want ...string) {
	t.Helper()
	if got := <-changes; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChangesComeTogether(t *testing.T) {
	dir := tree(t, "a", "b", "sub/c")
	inBubble(t, dir, 100, Options{}, func(t *testing.T, changes <-chan []string, latest func() *fakeNotifier) {
		began := time.Now()
		for _, rel := range []string{"b", "a", "b", "sub/c"} {
			latest().send(fsnotify.Write, rel)
			time.Sleep(quiet / 2)
		}
		wantChanges(t, changes, "a", "b", "sub/c")
		if got := time.Since(began); got != 3*quiet/2+quiet {
			t.Errorf("reported after %v", got)
		}
		latest().send(fsnotify.Write, "a")
		wantChanges(t, changes, "a")
	})
}

func TestChangesWithoutAPauseAreReportedInTime(t *testing.T) {
	inBubble(t, tree(t, "a"), 100, Options{}, func(t *testing.T, changes <-chan []string, latest func() *fakeNotifier) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var writer sync.WaitGroup
		n := latest()
		writer.Go(func() {
			for ctx.Err() == nil {
				n.send(fsnotify.Write, "a")
				time.Sleep(quiet / 2)
			}
		})
		began := time.Now()
		wantChanges(t, changes, "a")
		if got := time.Since(began); got > longest+quiet {
			t.Errorf("reported after %v, want at most %v", got, longest)
		}
		cancel()
		writer.Wait()
	})
}

func TestSlowReaderGetsAllChangesAtOnce(t *testing.T) {
	inBubble(t, tree(t), 100, Options{}, func(t *testing.T, changes <-chan []string, latest func() *fakeNotifier) {
		for i := range 5 {
			latest().send(fsnotify.Remove, fmt.Sprint("file", i))
			time.Sleep(10 * time.Second)
		}
		wantChanges(t, changes, "file0", "file1", "file2", "file3", "file4")
		for i := range maxPending + 1 {
			latest().send(fsnotify.Remove, fmt.Sprint("file", i))
		}
		latest().send(fsnotify.Remove, "more")
		wantChanges(t, changes, ".")
	})
}

func TestNewDirectoriesAreWatched(t *testing.T) {
	dir := tree(t, "old/a", ".git/objects/", "out/x/")
	write(t, dir, ".gitignore", "out/\n*.tmp\n")
	inBubble(t, dir, 100, Options{}, func(t *testing.T, changes <-chan []string, latest func() *fakeNotifier) {
		n := latest()
		if got, want := n.paths(), []string{".", "old"}; !slices.Equal(got, want) {
			t.Errorf("watched %q, want %q", got, want)
		}
		write(t, dir, "new/deep/file", "")
		n.send(fsnotify.Create, "new")
		wantChanges(t, changes, "new")
		if got, want := n.paths(), []string{".", "new", "new/deep", "old"}; !slices.Equal(got, want) {
			t.Errorf("watched %q, want %q", got, want)
		}

		write(t, dir, "x.tmp", "")
		write(t, dir, "out/y", "")
		n.send(fsnotify.Create, ".git")
		n.send(fsnotify.Create, "out") // what is ignored is not watched
		must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "moved")))
		n.send(fsnotify.Rename, "new")
		n.send(fsnotify.Create, "moved")
		wantChanges(t, changes, "moved", "new", "out")
		if got, want := n.paths(), []string{".", "moved", "moved/deep", "old"}; !slices.Equal(got, want) {
			t.Errorf("watched %q, want %q", got, want)
		}

		write(t, dir, ".gitignore", "*.tmp\n")
		n.send(fsnotify.Write, ".gitignore")
		wantChanges(t, changes, ".")
		if got, want := n.paths(), []string{".", "moved", "moved/deep", "old", "out", "out/x"}; !slices.Equal(got, want) {
			t.Errorf("watched %q, want %q", got, want)
		}
	})
}

func TestTooManyDirectoriesToWatch(t *testing.T) {
	var log bytes.Buffer
	dir := tree(t, "a/", "b/", "c/")
	inBubble(t, dir, 2, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, changes <-chan []string, latest func() *fakeNotifier) {
		began := time.Now()
		wantChanges(t, changes, ".")
		if got := time.Since(began); got > longest {
			t.Errorf("first reported after %v", got)
		}
		wantChanges(t, changes, ".")
		wantChanges(t, changes, ".")
		if got := time.Since(began); got < 2*poll || got > 2*poll+longest {
			t.Errorf("reported twice more after %v, want once per %v", got, poll)
		}
		if !latest().closed {
			t.Error("the notifier stays open")
		}
	})
	if got := strings.Count(log.String(), "cannot be watched"); got != 1 {
		t.Errorf("%d warnings, want 1:\n%s", got, &log)
	}
}

func TestLostEvents(t *testing.T) {
	dir := tree(t, "a/")
	inBubble(t, dir, 100, Options{}, func(t *testing.T, changes <-chan []string, latest func() *fakeNotifier) {
		write(t, dir, "unseen/file", "")
		latest().errs <- fsnotify.ErrEventOverflow
		wantChanges(t, changes, ".")
		if got, want := latest().paths(), []string{".", "a", "unseen"}; !slices.Equal(got, want) {
			t.Errorf("watched %q, want %q", got, want)
		}
		latest().errs <- errors.New("another error")
		wantChanges(t, changes, ".")
	})
}

func TestFolderVanishesAndReturns(t *testing.T) {
	dir := tree(t, "folder/a")
	folder := filepath.Join(dir, "folder")
	inBubble(t, folder, 100, Options{}, func(t *testing.T, changes <-chan []string, latest func() *fakeNotifier) {
		first := latest()
		must(t, os.Rename(folder, folder+"2"))
		wantChanges(t, changes, ".")
		write(t, folder, "sub/new", "")
		wantChanges(t, changes, ".")
		second := latest()
		if first == second || !slices.Equal(second.paths(), []string{".", "sub"}) {
			t.Errorf("watched %q after the return", second.paths())
		}

		// Another directory takes its place between two looks.
		must(t, os.Rename(folder, folder+"3"))
		write(t, folder, "other/x", "")
		wantChanges(t, changes, ".")
		if got, want := latest().paths(), []string{".", "other"}; !slices.Equal(got, want) {
			t.Errorf("watched %q, want %q", got, want)
		}

		must(t, os.Rename(folder, folder+"4"))
		latest().send(fsnotify.Remove, ".") // the system says it at once
		wantChanges(t, changes, ".")
	})
}

func TestFolderWithoutNotifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFolder(t, tree(t), Options{})
		f.notify = func() (notifier, error) { return notifier{}, syscall.EMFILE }
		ctx, cancel := context.WithCancel(t.Context())
		w, err := f.Watch(ctx)
		must(t, err)
		wantChanges(t, w.Changes(), ".")
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

// collect returns the changes until all that are wanted came: a busy machine may report
// them in parts.
func collect(t *testing.T, w *Watcher, want []string) []string {
	t.Helper()
	all := make(map[string]bool)
	missing := func(rel string) bool { return !all[rel] }
	for slices.ContainsFunc(want, missing) {
		select {
		case paths := <-w.Changes():
			for _, rel := range paths {
				all[rel] = true
			}
		case <-time.After(time.Minute):
			return outermost(all)
		}
	}
	return outermost(all)
}
