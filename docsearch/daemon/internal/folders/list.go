package folders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// The paths of the folders are in a file beside the index, because the index may have
// to be made anew.

// readList returns the paths in the file, nil if there is none yet.
func readList(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of folders: %w", err)
	}
	var paths []string
	if err := json.Unmarshal(data, &paths); err != nil {
		return nil, fmt.Errorf("%s is no JSON list of paths, remove it: %w", file, err)
	}
	return paths, nil
}

// writeList replaces the file at once, so that no one reads half of it.
func writeList(file string, paths []string) error {
	data, err := json.MarshalIndent(paths, "", "\t")
	if err != nil {
		return fmt.Errorf("write the list of folders: %w", err)
	}
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the list of folders: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write the list of folders: %w", err)
	}
	return nil
}

// agree makes the index have the folders of the list, and returns what it knows of
// them.
func agree(ctx context.Context, x *index.Index, file string) ([]index.FolderStats, error) {
	paths, err := readList(file)
	if err != nil {
		return nil, err
	}
	known, err := x.Folders(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the folders of the index: %w", err)
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
