package crawl

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
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

// Watcher reports what may have changed in the directories that walks have entered.
type Watcher struct {
	folder   *Folder
	root     *os.Root // of the directory that is watched
	notifier notifier
	changes  chan []string
	wait     sync.WaitGroup

	mu      sync.Mutex
	watched map[string]bool // relative paths of directories
	blind   bool            // nothing is watched
}

// Changes returns the channel of the paths that may have changed: relative slash paths
// of files and directories, which may be gone. A directory means everything below
// it, "." for the whole folder. Paths that are ignored may be among them; Walk visits
// what counts, and has what is new watched. Changes that follow each other come together,
// after 200 ms without one or after 2 s. The channel is closed when the context of Watch
// is done, and when the folder vanishes or another directory takes its place.
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

// Watch has each Walk from now on watch the directories that it enters, before it looks
// at what is in them, so that no change is missed. Where the system cannot watch them all,
// the watcher warns, and reports "." once a minute instead. Watch is not called while a
// walk or an earlier Watcher runs.
func (f *Folder) Watch(ctx context.Context) (*Watcher, error) {
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	w := &Watcher{folder: f, root: root, changes: make(chan []string), watched: make(map[string]bool)}
	w.notifier, err = f.notify()
	if err != nil {
		w.fail(err)
	}
	f.watcher = w
	w.wait.Go(func() { // ends with ctx
		defer close(w.changes)
		defer root.Close()
		defer w.unwatch()
		w.loop(ctx)
	})
	return w, nil
}

func (w *Watcher) unwatch() {
	if w.notifier.close != nil {
		_ = w.notifier.close()
	}
}

// add watches a directory, perhaps again.
func (w *Watcher) add(rel string) {
	if w == nil || w.isBlind() {
		return
	}
	err := w.notifier.add(w.folder.absolute(rel))
	switch {
	case err == nil:
		w.mu.Lock()
		w.watched[rel] = true
		w.mu.Unlock()
	case !isGone(err) && !errors.Is(err, fsnotify.ErrClosed):
		w.fail(err)
	}
}

// fail gives up watching, so that others can, and has the folder looked at from time to
// time.
func (w *Watcher) fail(err error) {
	w.mu.Lock()
	before := w.blind
	w.blind = true
	clear(w.watched)
	w.mu.Unlock()
	if !before {
		w.unwatch()
		w.folder.log.Warn("folder cannot be watched, it is looked at once a minute; "+
			"raise fs.inotify.max_user_watches if it has many directories", "every", poll, "err", err)
	}
}

func (w *Watcher) isBlind() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.blind
}

// forget ends the watches at and below a directory that went: one that was renamed would
// report its old name for ever.
func (w *Watcher) forget(rel string) {
	w.mu.Lock()
	var gone []string
	if w.watched[rel] {
		for dir := range w.watched {
			if dir == rel || strings.HasPrefix(dir, rel+"/") {
				gone = append(gone, dir)
				delete(w.watched, dir)
			}
		}
	}
	w.mu.Unlock()
	for _, dir := range gone {
		_ = w.notifier.remove(w.folder.absolute(dir)) // it may have ended by itself
	}
}

func (w *Watcher) loop(ctx context.Context) {
	var p pending
	events, errs := w.notifier.events, w.notifier.errors
	looks := time.NewTicker(look)
	defer looks.Stop()
	polls := time.NewTicker(poll)
	defer polls.Stop()
	for {
		due, paths := p.due()
		out := w.changes
		if paths == nil {
			out = nil
		}
		select {
		case <-ctx.Done():
			return
		case out <- paths:
			p = pending{}
		case <-due:
		case <-looks.C:
			if w.folder.isAt(w.root) != nil {
				return
			}
		case <-polls.C:
			if w.isBlind() {
				p.add(".")
			}
		case event, ok := <-events:
			if !ok {
				events = nil
				w.fail(fsnotify.ErrClosed)
				continue
			}
			p.add(w.take(event))
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.folder.log.Warn("folder watch reports an error, the whole folder is looked at", "err", err)
			}
			p.add(".")
		}
	}
}

// take returns the path that an event reports, "" if none.
func (w *Watcher) take(event fsnotify.Event) string {
	rel, ok := w.folder.relative(event.Name)
	switch {
	case !ok:
		return ""
	case slices.Contains(ignoreFiles, path.Base(rel)):
		return parent(rel)
	case rel != "." && isHidden(rel, false):
		return ""
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		w.forget(rel)
	}
	return rel
}

// pending are the changes that were not reported yet.
type pending struct {
	paths       map[string]bool
	first, last time.Time // when they came
}

// add notes that a path may have changed, unless it is empty.
func (p *pending) add(rel string) {
	if rel == "" {
		return
	}
	now := time.Now()
	if len(p.paths) == 0 {
		p.first = now
	}
	p.last = now
	if len(p.paths) >= maxPending || p.paths["."] {
		p.paths, rel = nil, "."
	}
	if p.paths == nil {
		p.paths = make(map[string]bool)
	}
	p.paths[rel] = true
}

// due returns the paths to report, if it is time, or else the timer that says when it is.
// Both are nil if nothing is pending.
func (p *pending) due() (<-chan time.Time, []string) {
	if len(p.paths) == 0 {
		return nil, nil
	}
	if wait := min(quiet-time.Since(p.last), longest-time.Since(p.first)); wait > 0 {
		return time.After(wait), nil
	}
	return nil, outermost(p.paths)
}

// outermost returns the paths that no other one contains, in order.
func outermost(paths map[string]bool) []string {
	if paths["."] {
		return []string{"."}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(paths)), func(rel string) bool {
		for dir := parent(rel); dir != "."; dir = parent(dir) {
			if paths[dir] {
				return true
			}
		}
		return false
	})
}
