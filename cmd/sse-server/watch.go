package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
)

// watchDelay is how long files that change may take until they are read.
const watchDelay = 250 * time.Millisecond

// reloadWhenAsked reloads the configuration at each hangup, and when a watched file
// changes, until ctx ends. It closes the watcher, if there is one. Once a day it deletes the logins of principals that
// nobody uses.
func (d *daemon) reloadWhenAsked(ctx context.Context, hangup <-chan os.Signal) {
	watcher, due := new(fsnotify.Watcher), (<-chan time.Time)(nil) // which tells nothing
	if d.watcher != nil {
		watcher, due = d.watcher, time.After(0) // for changes since the start
		defer watcher.Close()
	}
	daily := time.NewTicker(24 * time.Hour)
	defer daily.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-daily.C:
			d.forgetUnused(ctx)
		case <-hangup:
			_ = d.reload(ctx, bySignal) // logs its error
		case event := <-watcher.Events:
			isOne := func(path string) bool { return filepath.Base(path) == filepath.Base(event.Name) }
			// Others may be written all the time.
			if due == nil && (event.Op != fsnotify.Write || slices.ContainsFunc(d.config.Load().Files(), isOne)) {
				due = time.After(watchDelay)
			}
		case err := <-watcher.Errors: // such as too many changes: some are lost
			d.log.Warn("watch failed", "err", err)
			due = time.After(watchDelay)
		case <-due:
			due = nil
			_ = d.reload(ctx, byWatch)
		}
	}
}

// follow watches the folders of the files of c, if they are to be watched: editors and
// Kubernetes replace files.
func (d *daemon) follow(c *config.Config) {
	for _, path := range c.Files() {
		if d.watcher == nil {
			return
		}
		if err := d.watcher.Add(filepath.Dir(path)); err != nil {
			d.log.Warn("watch failed", "err", err)
		}
	}
}
