package handshake

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// AnyFolder has a server say, in an empty folder, what it says in any one: so a new project of a user has its
// tools while they boot, and no project has a say in what another one is told.
type AnyFolder struct {
	// Memory keeps what the server says there.
	Memory *remember.Server
	// In returns the server as it starts in a folder.
	In func(dir string) upstream.Upstream
	// ByItself says that each Supplier starts it once something new is remembered; else LearnInAnyFolder alone
	// does.
	ByItself bool
}

// anyFolderAfter is how long after something new was remembered the server starts in an empty folder: who has
// just come has the machine first.
const anyFolderAfter = 5 * time.Second

// learnInAnyFolderSoon is LearnInAnyFolder after a while, in the background, and once at a time.
func (s *Supplier) learnInAnyFolderSoon() {
	folder := s.opts().AnyFolder
	if folder == nil || !folder.ByItself || !s.anyFolderSoon.CompareAndSwap(false, true) {
		return
	}
	s.Go(func() { // ends with the start, and with the supplier
		defer s.anyFolderSoon.Store(false)
		select {
		case <-time.After(anyFolderAfter):
			s.LearnInAnyFolder(s.life)
		case <-s.serving.Done():
		case <-s.life.Done():
		}
	})
}

// LearnInAnyFolder starts the server in an empty folder and remembers what it says there, unless that is known, and not
// older than SupplierOptions.RememberFor, or was tried within an hour. It returns when the server has ended. One
// that does not start there is no failure: a client in a new folder waits for its own.
func (s *Supplier) LearnInAnyFolder(ctx context.Context) {
	if !s.WantsAnyFolder() || !s.anyFolderTries.first("", time.Now()) {
		return
	}
	opts := *s.opts()
	if err := s.learnIn(ctx, opts.AnyFolder, opts); err != nil && ctx.Err() == nil {
		s.log.Debug("the server does not start in an empty folder: in a new folder the first client waits for it", "err", err)
	}
}

// WantsAnyFolder reports whether LearnInAnyFolder has something to learn. A server of which all clients share one
// session may have no second process.
func (s *Supplier) WantsAnyFolder() bool {
	opts := s.opts()
	if opts.AnyFolder == nil || opts.Forwards || opts.Shared || opts.Params == nil {
		return false
	}
	last := opts.AnyFolder.Memory.Last(remember.Own)
	return last == nil || time.Since(last.Learned) >= opts.RememberFor
}

func (s *Supplier) learnIn(ctx context.Context, folder *AnyFolder, opts SupplierOptions) error {
	dir, remove, err := folder.Memory.EmptyFolder(ctx) // when no other server is in one
	if err != nil {
		return fmt.Errorf("make an empty folder: %w", err)
	}
	defer remove()
	if !s.WantsAnyFolder() { // another program has learned it meanwhile
		return nil
	}
	opts.Memory, opts.AnyFolder = folder.Memory, nil
	opts.Shared, opts.Warm, opts.MaxSessions, opts.ProcessIdle = false, 0, 1, 0
	opts.Session.Logger = opts.Session.Logger.With("folder", "an empty one")
	alone := NewSupplier(folder.In(dir), opts)
	defer alone.Wait()
	defer alone.Close()
	_, err = alone.tryAndLearn(ctx)
	return err
}
