package remember

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/private"
)

// Locks are those with which the programs of a user tell each other who runs a command, so that none starts it in an
// empty folder beside a client: some servers end the process that ran before, or need a port or a file that it has.
// Where there are no locks, nothing starts in an empty folder.
//
//	file         | is locked
//	-------------|----------------------------------------------------------------------------------
//	in-use-…     | together, by each program in which the command has a session
//	             | alone, for a moment, by one that looks whether there is such a program
//	reserved-…   | alone, by the program that waits to start the command in an empty folder
//	empty-folder | alone, by the program of which a server is in an empty folder, whatever its command
//
// The file tries-… says when the command was started there.
//
// Make it with NewLocks. It is safe for concurrent use. A nil one locks nothing.
type Locks struct {
	dir, command string
	log          *slog.Logger
	follows      job // locks in-use-…, and unlocks it
	// held is in-use-…, or nil if it is not locked; failed says that it could not be, and again is the next try then.
	// All are of follows alone.
	held   *flock.Flock
	failed bool
	again  *time.Timer

	mu     sync.Mutex // guards what follows
	uses   int
	isSeen bool // held is not nil
}

const (
	inUse       = "in-use-"
	reserved    = "reserved-"
	emptyFolder = "empty-folder"
	// lookPoll is the time between two tries to lock a file that is locked for a moment, and turnPoll between two to
	// lock one that is locked for long.
	lookPoll = 10 * time.Millisecond
	turnPoll = 100 * time.Millisecond
	// lockAgain is the time after which a program that could not lock in-use-… tries it again.
	lockAgain = time.Minute
)

var (
	// ErrInUse reports that a client may use the server.
	ErrInUse = errors.New("a client uses the server")
	// ErrNotWanted reports that it is known what the server says in an empty folder, or that it was tried.
	ErrNotWanted = errors.New("it has been tried")
)

// NewLocks returns the locks of a command, of which the files are in a directory, which is made when it is needed; nil
// without one. The log says when they cannot be used.
func NewLocks(dir, command string, log *slog.Logger) *Locks {
	if dir == "" {
		return nil
	}
	// Some commands share the four letters of the hash, which lets them wait for each other.
	l := &Locks{dir: dir, log: log, command: hashOf(command)[:4]}
	l.follows.does = l.follow
	return l
}

// Use says that the command has a session, until release is called or the program ends. Neither waits: a disk that
// hangs keeps one goroutine, however many sessions there are.
func (l *Locks) Use() (release func()) {
	if l == nil {
		return func() {}
	}
	l.use(1)
	return sync.OnceFunc(func() { l.use(-1) })
}

func (l *Locks) use(more int) {
	l.mu.Lock()
	l.uses += more
	isRight := l.isSeen == (l.uses > 0)
	l.mu.Unlock()
	if !isRight {
		l.follows.do(0)
	}
}

// isRight reports whether in-use-… is locked if the command has a session, and else is not.
func (l *Locks) isRight() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isSeen = l.held != nil
	return l.isSeen == (l.uses > 0)
}

// follow locks in-use-… while the command has a session. If it cannot, it tries again at the next session, and after a
// while.
func (l *Locks) follow() {
	for !l.isRight() {
		if l.held != nil {
			_ = l.held.Close()
			l.held = nil
			continue
		}
		locked, err := l.lockInUse()
		switch {
		case locked:
			l.failed = false
		case err != nil:
			l.warnOnce(err)
			if l.again == nil {
				l.again = time.AfterFunc(lockAgain, func() { l.follows.do(0) })
			} else {
				l.again.Reset(lockAgain)
			}
			return
		default: // somebody looks
			time.Sleep(lookPoll)
		}
	}
}

// warnOnce logs that in-use-… could not be locked, unless it has failed the last time too.
func (l *Locks) warnOnce(err error) {
	if l.failed {
		return
	}
	l.failed = true
	l.log.Warn(
		"other programs do not see that the server is used: they may start it in an empty folder meanwhile",
		"dir", l.dir, "err", err)
}

func (l *Locks) lockInUse() (locked bool, err error) {
	lock, err := l.open(inUse + l.command)
	if err != nil {
		return false, err
	}
	if locked, err = lock.TryRLock(); !locked {
		_ = lock.Close()
		return false, err
	}
	l.held = lock
	return true, nil
}

// IsUsed reports whether the command has a session, in whatever program.
func (l *Locks) IsUsed() (bool, error) {
	release, locked, err := l.tryAlone(inUse + l.command)
	if locked {
		release()
	}
	return !locked, err
}

// AwaitUnused waits until the command has had no session for a time. It looks now and then. It fails if there are no
// locks.
func (l *Locks) AwaitUnused(ctx context.Context, quiet time.Duration) error {
	if l == nil {
		return errors.New("there are no locks that say whether the server is used")
	}
	for since := time.Now(); ; {
		isUsed, err := l.IsUsed()
		switch {
		case err != nil:
			return err
		case isUsed:
			since = time.Now()
		case time.Since(since) >= quiet:
			return nil
		}
		select {
		case <-time.After(max(quiet/12, lookPoll)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Reserve reports whether this program alone is about to have the command run in an empty folder, until release is
// called.
func (l *Locks) Reserve() (release func(), ok bool) {
	release, ok, _ = l.tryAlone(reserved + l.command)
	return release, ok
}

// turn waits until no server is in an empty folder, and then has none start there until release is called.
func (l *Locks) turn(ctx context.Context) (release func(), err error) {
	for {
		release, locked, err := l.tryAlone(emptyFolder)
		if locked || err != nil {
			return release, err
		}
		select {
		case <-time.After(turnPoll):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the server in another empty folder: %w", ctx.Err())
		}
	}
}

// noteTry notes that the command starts in an empty folder now. It fails with ErrNotWanted if it has done so maxTries
// times within tryAgain, in whatever place and with whatever variables. The caller must have the turn.
func (l *Locks) noteTry() error {
	dir, err := ownDir(l.dir)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "tries-"+l.command)
	var tries []time.Time
	if data, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(data, &tries) // a damaged one counts as none
	}
	tries = slices.DeleteFunc(tries, func(at time.Time) bool {
		return time.Since(at) >= tryAgain || time.Until(at) > 0
	})
	if len(tries) >= maxTries {
		return ErrNotWanted
	}
	data, err := json.Marshal(append(tries, time.Now()))
	if err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}

func (l *Locks) tryAlone(name string) (release func(), locked bool, err error) {
	lock, err := l.open(name)
	if err != nil {
		return nil, false, err
	}
	locked, err = lock.TryLock()
	if !locked {
		_ = lock.Close()
	}
	return func() { _ = lock.Close() }, locked, err
}

func (l *Locks) open(name string) (*flock.Flock, error) {
	dir, err := ownDir(l.dir)
	return flock.New(filepath.Join(dir, name), flock.SetPermissions(0o600)), err
}

// ownDir makes a folder if there is none, checks it, and returns where it is, without links.
func ownDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := private.CheckFolder(dir); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
