package crawl

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	quiet      = 200 * time.Millisecond // without a change, before changes are reported
	longest    = 2 * time.Second        // that a change waits
	look       = 2 * time.Second        // between looks whether the folder is there
	poll       = time.Minute            // between reports of a folder that cannot be watched
	maxPending = 10_000                 // paths; a watcher with more reports "."
)

// Watcher reports what may have changed in a folder.
type Watcher struct {
	changes chan []string
	wait    sync.WaitGroup
}

// Changes returns the channel of the paths that may have changed: relative slash paths
// of files and directories, which may be gone. A directory means everything below
// it, "." for the whole folder. Paths that are ignored may be among them; Walk visits
// what counts. Changes that follow each other come together, after 200 ms without one or
// after 2 s. The channel is closed when the context of Watch is done.
func (w *Watcher) Changes() <-chan []string { return w.changes }

// Wait returns when the watcher has ended and holds no resource. The context of Watch
// ends it.
func (w *Watcher) Wait() { w.wait.Wait() }

// notifier is what is needed of fsnotify. Its channels are nil, so that nothing comes,
// where nothing is watched.
type notifier struct {
	add, remove func(path string) error
	close       func() error
	events      <-chan fsnotify.Event
	errors      <-chan error
}

func newNotifier() (notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return notifier{}, err
	}
	return notifier{w.Add, w.Remove, w.Close, w.Events, w.Errors}, nil
}

// Watch reports the changes from now on, so call it before Walk. Where the system cannot
// watch all directories, it reports "." once a minute instead, and warns once. It
// reports "." also when the folder vanishes and when it returns. What cannot be looked at
// is not watched; once a minute it looks whether that has changed.
func (f *Folder) Watch(ctx context.Context) (*Watcher, error) {
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	w := &Watcher{changes: make(chan []string)}
	run := &watching{folder: f, root: root, out: w.changes, pending: make(map[string]bool), watched: make(map[string]bool)}
	run.open(ctx)
	w.wait.Go(func() { // ends with ctx
		defer close(w.changes)
		defer run.close()
		run.loop(ctx)
	})
	return w, nil
}

// watching is the state of the goroutine that watches.
type watching struct {
	folder *Folder
	out    chan<- []string

	root     *os.Root // of the directory that is watched; nil while there is none
	notifier notifier
	watched  map[string]bool // relative paths of directories
	partial  bool            // something cannot be looked at
	warned   bool

	pending map[string]bool
	first   time.Time // when the first of pending came
	last    time.Time
}

// open watches the directories of the folder.
func (w *watching) open(ctx context.Context) {
	n, err := w.folder.notify()
	if err != nil {
		w.fail(err)
		return
	}
	w.notifier = n
	w.addBelow(ctx, ".", nil)
}

func (w *watching) close() {
	w.unwatch()
	if w.root != nil {
		w.root.Close()
		w.root = nil
	}
}

func (w *watching) unwatch() {
	if w.notifier.close != nil {
		_ = w.notifier.close()
	}
	w.notifier, w.partial = notifier{}, false
	clear(w.watched)
}

// fail gives up watching. The folder is reported now, and from time to time.
func (w *watching) fail(err error) {
	w.unwatch()
	w.change(".")
	if !w.warned {
		w.warned = true
		w.folder.log.Warn("folder cannot be watched, it is looked at once a minute; "+
			"raise fs.inotify.max_user_watches if it has many directories", "every", poll, "err", err)
	}
}

// addBelow watches the directories at and below rel. found receives those that are new:
// what is in them may have come before the watch.
func (w *watching) addBelow(ctx context.Context, rel string, found func(rel string)) {
	if w.notifier.add == nil {
		return
	}
	var added []string
	refused := make(map[string]error) // to watch directories that may not be readable either
	err := w.folder.walk(ctx, rel, visitor{dir: func(dir string) error {
		if w.watched[dir] {
			return nil
		}
		err := w.notifier.add(w.folder.absolute(dir))
		switch {
		case err == nil:
			w.watched[dir] = true
			added = append(added, dir)
		case errors.Is(err, fs.ErrPermission):
			refused[dir] = err
		case !isGone(err):
			return err
		}
		return nil
	}})
	part, ok := errors.AsType[*UnreadableError](err)
	switch {
	case ok:
		w.partial = true
		for _, dir := range part.Paths {
			delete(refused, dir)
			w.forget(dir) // it is new when it can be looked at again
		}
	case err == nil:
	case ctx.Err() != nil || errors.Is(err, ErrGone):
		return
	case errors.Is(err, ErrChanged): // the change of the ignore file comes as an event
		w.change(rel)
	default:
		w.fail(err)
		return
	}
	for _, err := range refused { // it can be read, so that its changes would be missed
		w.fail(err)
		return
	}
	for _, dir := range added {
		if found != nil && w.watched[dir] {
			found(dir)
		}
	}
}

func (w *watching) loop(ctx context.Context) {
	looks := time.NewTicker(look)
	defer looks.Stop()
	polls := time.NewTicker(poll)
	defer polls.Stop()
	for {
		due, out, paths := w.report()
		select {
		case <-ctx.Done():
			return
		case out <- paths:
			clear(w.pending)
		case <-due:
		case <-looks.C:
			w.look(ctx)
		case <-polls.C:
			if w.partial {
				w.partial = false
				w.addBelow(ctx, ".", w.change)
			} else if w.notifier.add == nil && w.root != nil {
				w.change(".")
			}
		case event, ok := <-w.notifier.events:
			if !ok {
				w.fail(fsnotify.ErrClosed)
				continue
			}
			w.take(ctx, event)
		case err := <-w.notifier.errors:
			w.takeError(ctx, err)
		}
	}
}

// report returns the channel and the paths to send, if it is time, or else the timer
// that says when it is. All are nil if nothing is pending.
func (w *watching) report() (due <-chan time.Time, out chan<- []string, paths []string) {
	if len(w.pending) == 0 {
		return nil, nil, nil
	}
	wait := min(quiet-time.Since(w.last), longest-time.Since(w.first))
	if wait > 0 {
		return time.After(wait), nil, nil
	}
	return nil, w.out, outermost(w.pending)
}

// outermost returns the paths that no other one contains, in order.
func outermost[V any](paths map[string]V) []string {
	if _, ok := paths["."]; ok {
		return []string{"."}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(paths)), func(rel string) bool {
		for dir := parent(rel); dir != "."; dir = parent(dir) {
			if _, ok := paths[dir]; ok {
				return true
			}
		}
		return false
	})
}

// change notes that the path may have changed.
func (w *watching) change(rel string) {
	now := time.Now()
	if len(w.pending) == 0 {
		w.first = now
	}
	w.last = now
	if len(w.pending) >= maxPending {
		clear(w.pending)
		rel = "."
	}
	if !w.pending["."] {
		w.pending[rel] = true
	}
}

// take takes one event.
func (w *watching) take(ctx context.Context, event fsnotify.Event) {
	rel, ok := w.folder.relative(event.Name)
	switch {
	case !ok:
		return
	case rel == ".":
		w.look(ctx)
		return
	case slices.Contains(ignoreFiles, filepath.Base(event.Name)):
		// What is ignored now stays watched, and its changes are reported in vain.
		w.change(parent(rel))
		w.addBelow(ctx, parent(rel), nil)
		return
	case isHidden(rel, false):
		return
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		w.forget(rel)
	}
	w.change(rel)
	if event.Has(fsnotify.Create) || event.Has(fsnotify.Chmod) && w.partial {
		w.addBelow(ctx, rel, w.change)
	}
}

// forget ends the watches at and below a directory, such as one that went: one that was
// renamed would report its old name for ever.
func (w *watching) forget(rel string) {
	if !w.watched[rel] {
		return
	}
	for dir := range w.watched {
		if rel == "." || dir == rel || strings.HasPrefix(dir, rel+"/") {
			_ = w.notifier.remove(w.folder.absolute(dir)) // it may have ended by itself
			delete(w.watched, dir)
		}
	}
}

// takeError looks at everything after events were lost.
func (w *watching) takeError(ctx context.Context, err error) {
	if errors.Is(err, fsnotify.ErrEventOverflow) {
		w.addBelow(ctx, ".", nil)
	} else {
		w.folder.log.Warn("folder watch reports an error, the whole folder is looked at", "err", err)
	}
	w.change(".")
}

// look notices that the folder vanished, returned, or is another directory now. The
// watches are of the directory that was there, so they start over.
func (w *watching) look(ctx context.Context) {
	if w.root != nil && w.folder.isAt(w.root) == nil {
		return
	}
	root, err := w.folder.open()
	if err != nil && w.root == nil {
		return
	}
	w.close()
	if w.root = root; err == nil {
		w.open(ctx)
	}
	w.change(".")
}
