package remember

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// emptyFolder begins the names of the folders that EmptyFolder makes.
const emptyFolder = ".empty-"

// EmptyFolder makes a folder that is empty, for a server that starts there, below the one of the files: what is
// in the folders above it is the user's own. remove removes it with all that the server has left there; one of
// a program that was killed is removed later.
func (s *Server) EmptyFolder() (dir string, remove func(), err error) {
	under := s.store.dir
	if err := os.MkdirAll(under, 0o700); err != nil {
		return "", nil, err
	}
	if err := checkFolder(under); err != nil {
		return "", nil, err
	}
	if under, err = filepath.Abs(under); err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(under, emptyFolder+"*") // 0700
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// dropLeftovers removes what programs have left that were killed while they wrote a file, or while a server ran
// in an empty folder. Both take much less than an hour.
func (s *Store) dropLeftovers() {
	entries, _ := os.ReadDir(s.dir)
	for _, entry := range entries {
		isLeft := strings.HasPrefix(entry.Name(), beforeRename) || strings.HasPrefix(entry.Name(), emptyFolder)
		if info, err := entry.Info(); err == nil && isLeft && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(filepath.Join(s.dir, entry.Name()))
		}
	}
}
