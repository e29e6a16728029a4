package crawl

import "github.com/fsnotify/fsnotify"

// fsNotifier is fsnotify behind an interface.
type fsNotifier struct{ *fsnotify.Watcher }

func newNotifier() (notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return fsNotifier{w}, nil
}

func (n fsNotifier) Events() <-chan fsnotify.Event { return n.Watcher.Events }
func (n fsNotifier) Errors() <-chan error          { return n.Watcher.Errors }
