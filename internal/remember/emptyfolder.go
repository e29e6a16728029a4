package remember

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/private"
)

const (
	// folderName begins the names of the folders that EmptyFolder makes.
	folderName = ".empty-"
	// tried begins the names of the files that say when a server has not started in an empty folder.
	tried = ".tried-"
)

// NoteTried notes that the server has not started in an empty folder now.
func (s *Server) NoteTried() {
	if under, err := ownDir(s.store.dir); err == nil {
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
// project can have files in a folder above it, where there are no locks, and with ErrInUse while a client may use the command.
//
// One server at a time is in such a folder, in all programs that share the locks, because ten servers at once would keep
// the machine busy. EmptyFolder waits for the others as long as ctx lasts. Whether there is a client it looks after that, so
// one that has come meanwhile counts. remove removes the folder with all that the server has left there. The folder of a program
// that was killed is removed later.
func (s *Server) EmptyFolder(ctx context.Context, locks *Locks) (dir string, remove func(), err error) {
	under, err := ownDir(s.store.dir)
	if err == nil {
		err = private.CheckSecluded(under)
	}
	if err != nil {
		return "", nil, err
	}
	release, err := locks.turn(ctx)
	if err != nil {
		return "", nil, err
	}
	isUsed, err := locks.IsUsed()
	if err == nil && isUsed {
		err = ErrInUse
	}
	if err == nil {
		dir, err = os.MkdirTemp(under, folderName+"*") // 0700
	}
	if err != nil {
		release()
		return "", nil, err
	}
	return dir, func() {
		removeAll(dir)
		release()
	}, nil
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
		} else if !strings.HasPrefix(name, atomicfile.Unfinished) && !strings.HasPrefix(name, folderName) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > limit {
			removeAll(filepath.Join(s.dir, entry.Name()))
		}
	}
}
