package folders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// The paths of the folders are in a file beside the index, because the index may have
// to be made anew.

// errNoList says that there is no list, or none that can be understood.
var errNoList = errors.New("no list of folders")

// readList returns the paths in the file.
func readList(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoList
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of folders: %w", err)
	}
	var paths []string
	if err := json.Unmarshal(data, &paths); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errNoList, file, err)
	}
	return paths, nil
}

// writeList replaces the file at once, so that no one reads half of it.
func writeList(file string, paths []string) error {
	data, err := json.MarshalIndent(append([]string{}, paths...), "", "\t")
	if err != nil {
		return fmt.Errorf("write the list of folders: %w", err)
	}
	if err := discovery.WriteFile(filepath.Dir(file), filepath.Base(file), append(data, '\n')); err != nil {
		return fmt.Errorf("write the list of folders: %w", err)
	}
	return nil
}

// agree makes the index have the folders of the list, and returns what it knows of
// them. Without a list, the folders are those of the index.
func (s *Set) agree(ctx context.Context) ([]index.FolderStats, error) {
	x := s.opts.Index
	known, err := x.Folders(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the folders of the index: %w", err)
	}
	paths, err := readList(s.opts.List)
	if errors.Is(err, errNoList) {
		if len(known) > 0 {
			s.log.Warn("the list of folders is lost, and is taken from the index", "err", err)
		}
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	for _, folder := range known {
		if !slices.Contains(paths, folder.Path) {
			if err := x.RemoveFolder(ctx, folder.Path); err != nil {
				return nil, fmt.Errorf("remove folder %s: %w", folder.Path, err)
			}
		}
	}
	for _, path := range paths {
		if err := x.AddFolder(ctx, path); err != nil {
			return nil, fmt.Errorf("add folder %s: %w", path, err)
		}
	}
	return x.Folders(ctx)
}

// paths returns the paths of all folders of the set.
func (s *Set) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.folders))
}
