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
	if name, rest, ok := strings.Cut(path, "="); ok && !exists(path) && (exists(rest) || !strings.ContainsRune(name, filepath.Separator)) {
		return "", usage{fmt.Errorf("--folder %s: give a path alone; all folders of a daemon have one model, and another --state-dir has another daemon", path)}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("make %s absolute: %w", path, err)
	}
	return abs, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// named returns the absolute paths of folders on the command line of an agent's server.
// They need not be there: what was indexed of them is, and they may come back.
func named(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		abs, err := absolute(path)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(abs); !errors.Is(err, fs.ErrNotExist) {
			found, err := existing([]string{path})
			if err != nil {
				return nil, err
			}
			abs = found[0]
		}
		all = append(all, abs)
	}
	return all, nil
}

// existing returns the absolute paths of folders on the command line, without symbolic
// links, as the daemon will name them.
func existing(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		abs, err := absolute(path)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(abs)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usage{fmt.Errorf("--folder %s: there is no such folder; what was indexed of it is found without --folder", path)}
		}
		if err != nil {
			return nil, usage{fmt.Errorf("--folder %s: %w", path, err)}
		}
		if !info.IsDir() {
			return nil, usage{fmt.Errorf("--folder %s: not a folder", path)}
		}
		if abs, err = filepath.EvalSymlinks(abs); err != nil {
			return nil, usage{fmt.Errorf("--folder %s: %w", path, err)}
		}
		all = append(all, abs)
	}
	return all, nil
}
