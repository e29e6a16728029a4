package handshake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
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
	// ByItself says that each Supplier starts it once nobody uses the server; else LearnInAnyFolder alone does.
	ByItself bool
}

// The server starts in an empty folder anyFolderAfter a session has ended, and else anyFolderAgain later, once nobody has one: some
// servers end the process that ran before, or need what it has.
const (
	anyFolderAfter = 5 * time.Second
	anyFolderAgain = time.Minute
)

// learnInAnyFolderSoon is LearnInAnyFolder once nobody has a session, in the background, and once at a time. Each session that
// ends calls it: what the server says may be new, or known since long ago, or have been learned by a gateway that ended.
func (s *Supplier) learnInAnyFolderSoon() {
	folder := s.Options().AnyFolder
	if folder == nil || !folder.ByItself || !s.anyFolderSoon.CompareAndSwap(false, true) {
		return
	}
	s.Go(func() { // ends with the start, and with the supplier
		defer s.anyFolderSoon.Store(false)
		wait := anyFolderAfter
		for backoff.Wait(s.readiness.life, wait) == nil && s.life.Err() == nil {
			if s.places.Free() && !s.LearnInAnyFolder(s.life) {
				return
			}
			wait = anyFolderAgain
		}
	})
}

// LearnInAnyFolder starts the server in an empty folder and remembers what it says there, unless that is known, and not
// older than SupplierOptions.RememberFor, or has been tried in vain lately. It returns when the server has ended. A server
// that does not start there is no failure: a client in a new folder waits for its own. isUsed reports that a client
// used the server, so that LearnInAnyFolder started nothing.
func (s *Supplier) LearnInAnyFolder(ctx context.Context) (isUsed bool) {
	if !s.WantsAnyFolder() {
		return false
	}
	opts := *s.Options()
	err := s.learnIn(ctx, opts.AnyFolder, opts)
	isUsed = errors.Is(err, remember.ErrInUse)
	if err != nil && !isUsed && !errors.Is(err, remember.ErrNotWanted) && ctx.Err() == nil {
		s.log.Debug("the server does not start in an empty folder: in a new folder the first client waits for it", "err", err)
	}
	return isUsed
}

// WantsAnyFolder reports whether LearnInAnyFolder has something to learn. A server of which all clients share one
// session may have no second process.
func (s *Supplier) WantsAnyFolder() bool {
	opts := s.Options()
	if opts.AnyFolder == nil || opts.Forwards || opts.Shared || opts.Params == nil {
		return false
	}
	return opts.AnyFolder.Memory.WantsEmptyFolder(opts.RememberFor)
}

func (s *Supplier) learnIn(ctx context.Context, of *AnyFolder, opts SupplierOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	folder, err := of.Memory.EmptyFolder(ctx, opts.Locks, opts.RememberFor) // when no other server is in one
	if err != nil {
		return fmt.Errorf("make an empty folder: %w", err)
	}
	defer folder.Remove(ctx)
	opts.Memory, opts.AnyFolder, opts.Locks = of.Memory.InFolder(folder.Dir), nil, nil
	opts.Shared, opts.Warm, opts.MaxSessions, opts.ProcessIdle = false, 0, 1, 0
	opts.Session.Logger = opts.Session.Logger.With("folder", "an empty one")
	alone := s.succession.newSupplier(of.In(folder.Dir), opts) // Wait and Abort are for both
	defer alone.end()
	_, err = alone.tryAndLearn(ctx)
	_ = alone.places.Take(context.Background(), "") // once its only session has ended
	alone.places.Give()
	return err
}
