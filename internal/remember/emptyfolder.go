package remember

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/private"
)

const (
	// emptyFolder begins the names of the folders that EmptyFolder makes.
	emptyFolder = ".empty-"
	// emptyFolderLock is the file that is locked while one is there, and emptyFolderPoll the time between two tries.
	emptyFolderLock = ".empty.lock"
	emptyFolderPoll = 100 * time.Millisecond
	// inUse begins the names of the files that programs lock, together, while a client may use their server.
	inUse = ".in-use-"
	// reserved begins the names of the files that one program locks that waits to run a server in an empty folder.
	reserved = ".reserved-"
	// tried begins the names of the files that say when a server has not started in an empty folder.
	tried = ".tried-"
)

// ErrInUse reports that a client may use the server: some servers end the process that ran before, or need what it has.
var ErrInUse = errors.New("a client uses the server")

// Use says that a client may use the server, until release is called or the program ends. It does not wait for the
// disk, nor for a server that runs in an empty folder: it says so once that has ended.
func (s *Server) Use() (release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with ctx, or with the disk
		defer close(done)
		under, err := s.store.makeDir()
		if err != nil {
			return
		}
		lock := s.lockOf(inUse, under)
		_, _ = lock.TryRLockContext(ctx, emptyFolderPoll)
		<-ctx.Done()
		_ = lock.Close()
	}()
	return func() {
		cancel()
		select {
		case <-done:
		case <-time.After(readWait):
		}
	}
}

// Reserve reports whether this program alone is about to have the server run in an empty folder, until release is called.
func (s *Server) Reserve() (release func(), ok bool) {
	under, err := s.store.checkedDir()
	if err != nil {
		return nil, false
	}
	lock := s.lockOf(reserved, under)
	locked, err := lock.TryLock()
	return func() { _ = lock.Close() }, locked || err != nil // where there are no locks, several may be
}

// lockOf returns a lock of the servers of one command. Some share one, which lets them wait for each other.
func (s *Server) lockOf(kind, dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, kind+s.command[:2]), flock.SetPermissions(0o600))
}

// NoteTried notes that the server has not started in an empty folder now.
func (s *Server) NoteTried() {
	if under, err := s.store.checkedDir(); err == nil {
		path := filepath.Join(under, tried+hashOf(s.name+s.place))
		_ = os.WriteFile(path, nil, 0o600)
		now := time.Now()
		_ = os.Chtimes(path, now, now)
	}
}

// Tried returns when NoteTried was called last for this server, zero if never.
func (s *Server) Tried() time.Time {
	info, err := os.Lstat(filepath.Join(s.store.dir, tried+hashOf(s.name+s.place)))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// EmptyFolder makes an empty folder below that of the files, for a server to start in. It fails if another user or a
// project can have files in a folder above it, and with ErrInUse while a client may use the server.
//
// One server at a time is in such a folder, in all programs that share the files, because ten servers at once would keep
// the machine busy. EmptyFolder waits for the others as long as ctx lasts, but not where the file system has no locks.
// remove removes the folder with all that the server has left there. The folder of a program that was killed is
// removed later.
func (s *Server) EmptyFolder(ctx context.Context) (dir string, remove func(), err error) {
	under, err := s.store.makeDir()
	if err == nil {
		err = private.CheckSecluded(under)
	}
	if err != nil {
		return "", nil, err
	}
	lock := flock.New(filepath.Join(under, emptyFolderLock), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, emptyFolderPoll); ctx.Err() != nil {
		_ = lock.Close()
		return "", nil, fmt.Errorf("wait for the server in another empty folder: %w", err)
	}
	use := s.lockOf(inUse, under)
	if locked, err := use.TryLock(); err == nil && !locked {
		_ = lock.Close()
		return "", nil, ErrInUse
	}
	dir, err = os.MkdirTemp(under, emptyFolder+"*") // 0700
	if err != nil {
		_, _ = use.Close(), lock.Close()
		return "", nil, err
	}
	return dir, func() {
		removeAll(dir)
		_, _ = use.Close(), lock.Close()
	}, nil
}

// makeDir makes the folder of the files if there is none, and is checkedDir.
func (s *Store) makeDir() (string, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	return s.checkedDir()
}

// checkedDir checks the folder of the files, and returns where it is, without links.
func (s *Store) checkedDir() (string, error) {
	if err := private.CheckFolder(s.dir); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// removeAll removes a folder, also with folders in it that nobody may write to, as package managers make them.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// dropLeftovers removes what programs have left that were killed while they wrote a file, or while a server ran
// in an empty folder. Both take much less than an hour. It also removes what NoteTried noted long ago.
func (s *Store) dropLeftovers() {
	entries, _ := os.ReadDir(s.dir)
	for _, entry := range entries {
		name, limit := entry.Name(), time.Hour
		if strings.HasPrefix(name, tried) {
			limit = MaxAge
		} else if !strings.HasPrefix(name, atomicfile.Unfinished) && !strings.HasPrefix(name, emptyFolder) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > limit {
			removeAll(filepath.Join(s.dir, entry.Name()))
		}
	}
}
