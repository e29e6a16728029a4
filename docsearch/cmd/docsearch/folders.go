package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// absolute returns the absolute form of a path on the command line.
func absolute(path string) (string, error) {
	if path == "" {
		return "", usage{errors.New("a path is empty")}
	}
	if name, rest, ok := strings.Cut(path, "="); ok && !exists(path) &&
		(exists(rest) || !strings.ContainsRune(name, filepath.Separator)) {
		return "", usage{fmt.Errorf("--folder %s: give a path alone; all folders of a daemon have one model, "+
			"and another --state-dir has another daemon", path)}
	}
	return filepath.Abs(path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// resolve returns the absolute paths of folders on the command line, without symbolic
// links, as the daemon names them. An agent may name folders that are gone: what was
// indexed of them is there, and they may come back.
func resolve(paths []string, mayBeGone bool) (all []string, err error) {
	for _, path := range paths {
		abs, err := absolute(path)
		if err != nil {
			return nil, err
		}
		resolved, err := filepath.EvalSymlinks(abs)
		switch {
		case errors.Is(err, fs.ErrNotExist) && mayBeGone:
			resolved = abs
		case errors.Is(err, fs.ErrNotExist):
			return nil, usage{fmt.Errorf("--folder %s: there is no such folder; "+
				"what was indexed of it is found without --folder", path)}
		case err != nil:
			return nil, usage{fmt.Errorf("--folder %s: %w", path, err)}
		}
		if info, err := os.Stat(resolved); err == nil && !info.IsDir() {
			return nil, usage{fmt.Errorf("--folder %s: not a folder", path)}
		}
		all = append(all, resolved)
	}
	return all, nil
}
