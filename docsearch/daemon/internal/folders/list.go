package folders

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// The paths of the folders are in a file beside the index, because the index may have
// to be made anew.

// writeList writes the paths of all folders, and one more unless it is empty.
func (s *Set) writeList(more string) error {
	s.mu.Lock()
	paths := slices.Sorted(maps.Keys(s.folders))
	s.mu.Unlock()
	if more != "" {
		paths = append(paths, more)
	}
	data, err := json.MarshalIndent(append([]string{}, paths...), "", "\t")
	if err == nil {
		err = discovery.WriteFile(s.opts.List, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the list of folders: %w", err)
	}
	return nil
}

// agree makes the index have the folders of the list, and returns what it knows of
// them. Without a list that can be understood, the folders are those of the index.
func (s *Set) agree() ([]api.Folder, error) {
	x := s.opts.Index
	known, err := x.Folders()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(s.opts.List)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the list of folders: %w", err)
	}
	var paths []string
	if wrong := json.Unmarshal(data, &paths); err != nil || wrong != nil {
		if len(known) > 0 {
			s.opts.Logger.Warn("the list of folders is lost, and is taken from the index", "err", errors.Join(err, wrong))
		}
		return known, nil
	}
	for _, folder := range known {
		if !slices.Contains(paths, folder.Path) {
			if err := x.RemoveFolder(folder.Path); err != nil {
				return nil, err
			}
		}
	}
	for _, path := range paths {
		if err := x.AddFolder(path); err != nil {
			return nil, err
		}
	}
	return x.Folders()
}
