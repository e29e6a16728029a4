package crawl

import (
	"context"
	"errors"
	"io/fs"
	"maps"
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
// it, "." for the whole folder. Paths that are ignored may be among them; WalkAt visits
// what counts. Changes that follow each other come together, after 200 ms without one or
// after 2 s. The channel is closed when the context of Watch is done.
func (w *Watcher) Changes() <-chan []string { return w.changes }

// Wait returns when the watcher has ended and holds no resource. The context of Watch
// ends it.
func (w *Watcher) Wait() { w.wait.Wait() }

// notifier is what fsnotify does.
type notifier interface {
	Add(path string) error
	Remove(path string) error
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

// Watch reports the changes from now on, so call it before Walk. Where the system cannot
// watch all directories, it reports "." once a minute instead, and warns once. It
// reports "." also when the folder vanishes and when it returns. It does not watch the
// paths of an UnreadableError, looks at them once a minute, and reports them once when
// they can be looked at again.
func (f *Folder) Watch(ctx context.Context) (*Watcher, error) {
	if _, err := f.current(); err != nil {
		return nil, err
	}
	w := &Watcher{changes: make(chan []string)}
	run := &watching{folder: f, out: w.changes, pending: make(map[string]bool), watched: make(map[string]bool), unread: make(map[string]bool)}
	run.present = f.generation()
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

	notifier notifier        // nil if the folder cannot be watched
	watched  map[string]bool // relative paths of directories
	unread   map[string]bool // relative paths that could not be looked at, and are not watched
	warned   bool
	present  int // the folder's generation, 0 if it is not there

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
	if w.notifier != nil {
		w.notifier.Close()
		w.notifier = nil
	}
	clear(w.watched)
	clear(w.unread)
}

// fail gives up watching. The folder is reported now, and from time to time.
func (w *watching) fail(err error) {
	w.close()
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
	delete(w.unread, rel)
	var added []string
	refused := make(map[string]error) // to watch directories that may not be readable either
	err := w.folder.walkAt(ctx, rel, visitor{dir: func(dir string) error {
		if w.watched[dir] {
			return nil
		}
		err := w.notifier.Add(w.folder.absolute(dir))
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
	if !w.settle(ctx, rel, err, refused) || found == nil {
		return
	}
	for _, dir := range added {
		if w.watched[dir] {
			found(dir)
		}
	}
}

// settle takes the error of the walk of addBelow. It returns false if the folder is not
// watched any more.
func (w *watching) settle(ctx context.Context, rel string, err error, refused map[string]error) bool {
	part, ok := errors.AsType[*UnreadableError](err)
	switch {
	case ok:
		w.leave(part.Paths)
	case err == nil:
	case ctx.Err() != nil || errors.Is(err, ErrGone):
		return true
	case errors.Is(err, ErrChanged):
		w.change(rel) // the change of the ignore file comes as an event
		return true
	default:
		w.fail(err)
		return false
	}
	for dir, err := range refused {
		if !w.unread[dir] { // it can be read, so that its changes would be missed
			w.fail(err)
			return false
		}
	}
	return true
}

// leave ends the watches at and below paths that cannot be looked at: what is ignored
// there is not known.
func (w *watching) leave(paths []string) {
	for _, rel := range paths {
		w.unread[rel] = true
		w.forget(rel)
	}
}

// retry watches and reports the paths that can be looked at again.
func (w *watching) retry(ctx context.Context) {
	for _, rel := range slices.Sorted(maps.Keys(w.unread)) {
		part, ok := errors.AsType[*UnreadableError](w.folder.walkAt(ctx, rel, visitor{}))
		if ok && slices.Contains(part.Paths, rel) {
			continue
		}
		w.addBelow(ctx, rel, w.change)
		if w.notifier == nil {
			return
		}
	}
}

// drops reports whether a change at a path need not be reported: it is ignored, or in a
// directory that cannot be looked at. That is reported once.
func (w *watching) drops(ctx context.Context, rel string) bool {
	ignored, err := w.folder.ignored(ctx, rel)
	part, ok := errors.AsType[*UnreadableError](err)
	if !ok {
		return ignored
	}
	for _, dir := range part.Paths {
		if !w.unread[dir] {
			w.change(dir)
		}
	}
	w.leave(part.Paths)
	return true
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
			if w.notifier != nil {
				w.retry(ctx)
			} else if w.present != 0 {
				w.change(".")
			}
		case event, ok := <-w.events():
			if !ok {
				w.fail(fsnotify.ErrClosed)
				continue
			}
			w.take(ctx, event)
		case err := <-w.errors():
			w.takeError(ctx, err)
		}
	}
}

// events returns nil, on which no one can receive, if the folder is not watched.
func (w *watching) events() <-chan fsnotify.Event {
	if w.notifier == nil {
		return nil
	}
	return w.notifier.Events()
}

func (w *watching) errors() <-chan error {
	if w.notifier == nil {
		return nil
	}
	return w.notifier.Errors()
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
	}
	if slices.Contains(ignoreFiles, filepath.Base(event.Name)) {
		w.rulesChanged(ctx, parent(rel))
		return
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		w.forget(rel)
	}
	if !w.pending[rel] && w.drops(ctx, rel) {
		return
	}
	w.change(rel)
	if event.Has(fsnotify.Create) || w.unread[rel] {
		w.addBelow(ctx, rel, w.change)
	}
}

// rulesChanged watches what is not ignored any more. What is ignored now stays watched;
// its changes are reported in vain.
func (w *watching) rulesChanged(ctx context.Context, dir string) {
	w.change(dir)
	w.addBelow(ctx, dir, nil)
}

// forget ends the watches at and below a directory, such as one that went: one that was
// renamed would report its old name for ever.
func (w *watching) forget(rel string) {
	if !w.watched[rel] {
		return
	}
	for dir := range w.watched {
		if rel == "." || dir == rel || strings.HasPrefix(dir, rel+"/") {
			_ = w.notifier.Remove(w.folder.absolute(dir)) // it may have ended by itself
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
	present := w.folder.generation()
	if present == w.present {
		return
	}
	w.present = present
	w.close()
	if present != 0 {
		w.open(ctx)
	}
	w.change(".")
}
