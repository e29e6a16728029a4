package handshake

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// The server starts in an empty folder anyFolderAfter a session has ended, and else anyFolderAgain later, once nobody
// has one: some servers end the process that ran before, or need what it has.
const (
	anyFolderAfter = 5 * time.Second
	anyFolderAgain = time.Minute
)

// emptyFolder learns what the server says in an empty folder.
type emptyFolder struct {
	source *source
	learns atomic.Bool // a call of learnInAnyFolderSoon waits or learns, and others do nothing
}

// learnInAnyFolderSoon is LearnInAnyFolder once nobody has a session, in the background, and once at a time. Each
// session that ends calls it: what the server says may be new, or known since long ago, or have been learned by a
// gateway that ended.
func (f *emptyFolder) learnInAnyFolderSoon() {
	s := f.source
	folder := s.Options().AnyFolder
	if folder == nil || !folder.ByItself || !f.learns.CompareAndSwap(false, true) {
		return
	}
	s.Go(func() { // ends with the start, and with the supplier
		defer f.learns.Store(false)
		wait := anyFolderAfter
		for backoff.Wait(s.ready, wait) == nil && s.life.Err() == nil {
			if s.places.Free() && !f.LearnInAnyFolder(s.life) {
				return
			}
			wait = anyFolderAgain
		}
	})
}

// LearnInAnyFolder starts the server in an empty folder and remembers what it says there, unless that is known, and not
// older than SupplierOptions.RememberFor, or has been tried in vain lately. It returns when the server has ended. A
// server that does not start there is no failure: a client in a new folder waits for its own. isUsed reports that a
// client used the server, so that LearnInAnyFolder started nothing.
func (f *emptyFolder) LearnInAnyFolder(ctx context.Context) (isUsed bool) {
	if !f.WantsAnyFolder() {
		return false
	}
	opts := *f.source.Options()
	err := f.learnIn(ctx, opts.AnyFolder, opts)
	isUsed = errors.Is(err, remember.ErrInUse)
	if err != nil && !isUsed && !errors.Is(err, remember.ErrNotWanted) && ctx.Err() == nil {
		f.source.log.Debug(
			"the server does not start in an empty folder: in a new folder the first client waits for it", "err", err)
	}
	return isUsed
}

// WantsAnyFolder reports whether LearnInAnyFolder has something to learn. A server of which all clients share one
// session may have no second process.
func (f *emptyFolder) WantsAnyFolder() bool {
	opts := f.source.Options()
	if opts.AnyFolder == nil || opts.Forwards || opts.Shared || opts.Params == nil {
		return false
	}
	return opts.AnyFolder.Memory.WantsEmptyFolder(opts.RememberFor)
}

// learnIn starts the server once in a folder that is made for it, remembers what it says there, and removes the folder.
// It returns once the server has ended: until then the folder is in use.
func (f *emptyFolder) learnIn(ctx context.Context, of *AnyFolder, opts SupplierOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.source.life, cancel)()
	folder, err := of.Memory.EmptyFolder(ctx, opts.Locks, opts.RememberFor) // when no other server is in one
	if err != nil {
		return fmt.Errorf("make an empty folder: %w", err)
	}
	defer folder.Remove(ctx)
	opts.Memory, opts.AnyFolder, opts.Locks = of.Memory.InFolder(folder.Dir), nil, nil
	opts.Shared, opts.Warm, opts.MaxSessions, opts.ProcessIdle = false, 0, 1, 0
	opts.Session.Logger = opts.Session.Logger.With("folder", "an empty one")
	alone := f.source.newSource(of.In(folder.Dir), opts, nil) // Wait and Abort are for both
	defer alone.end()
	_, err = alone.tryAndLearn(ctx)
	_ = alone.places.Acquire(context.Background(), "") // once its only session has ended
	alone.places.Release()
	return err
}
