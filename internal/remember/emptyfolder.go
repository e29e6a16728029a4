package remember

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/private"
)

const (
	// emptyFolder begins the names of the folders that EmptyFolder makes.
	emptyFolder = ".empty-"
	// emptyFolderLock is the file that is locked while one is there, and emptyFolderPoll the time between two tries.
	emptyFolderLock = ".empty.lock"
	emptyFolderPoll = 100 * time.Millisecond
)

// EmptyFolder makes a folder that is empty, for a server that starts there, below the one of the files. It fails if another
// user or a project can have files in a folder above it. One at a time is there, in all programs that share the files: EmptyFolder
// waits for the others as long as ctx, because no client waits for it, and ten servers at once would keep the machine busy.
// Where the file system has no locks, it does not wait. remove removes the folder with all that the server has left there;
// one of a program that was killed is removed later.
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
	dir, err = os.MkdirTemp(under, emptyFolder+"*") // 0700
	if err != nil {
		_ = lock.Close()
		return "", nil, err
	}
	return dir, func() {
		removeAll(dir)
		_ = lock.Close()
	}, nil
}

// makeDir makes the folder of the files if there is none, checks it, and returns where it is, without links.
func (s *Store) makeDir() (string, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
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
// in an empty folder. Both take much less than an hour.
func (s *Store) dropLeftovers() {
	entries, _ := os.ReadDir(s.dir)
	for _, entry := range entries {
		isLeft := strings.HasPrefix(entry.Name(), beforeRename) || strings.HasPrefix(entry.Name(), emptyFolder)
		if info, err := entry.Info(); err == nil && isLeft && time.Since(info.ModTime()) > time.Hour {
			removeAll(filepath.Join(s.dir, entry.Name()))
		}
	}
}
