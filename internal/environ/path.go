package environ

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// LastingPath returns a PATH without relative elements, and without temporary ones: agents make some for one session,
// and another session has others.
func LastingPath(path string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(element string) bool {
		return !filepath.IsAbs(element) || isTemporary(element)
	}), string(filepath.ListSeparator))
}

// PathKey returns what stays the same of a PATH as long as it should find the same programs: its elements, but of a
// temporary one the files in it, with what they lead to or have. So a session of an agent is like the one before, and a
// temporary folder with another program is not. It reads the file system.
func PathKey(path string) string {
	var key []string
	for _, element := range filepath.SplitList(path) {
		if !isTemporary(element) {
			key = append(key, element)
			continue
		}
		files, err := os.ReadDir(element) // sorted
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			key = append(key, element)
		}
		for _, file := range files {
			key = append(key, "/tmp/"+file.Name(), fileContent(filepath.Join(element, file.Name())))
		}
	}
	return fmt.Sprintf("%q", key)
}

// maxScript bounds the files that fileContent reads: scripts with the paths of their folder in them, and no programs.
const maxScript = 64 << 10

// fileContent returns where a link leads, or a hash of a script; of a larger file its size.
func fileContent(path string) string {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return ""
	case info.Mode().Type() == fs.ModeSymlink:
		target, _ := os.Readlink(path)
		return target
	case !info.Mode().IsRegular() || info.Size() > maxScript:
		return fmt.Sprint(info.Size())
	}
	data, _ := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// isTemporary reports whether an element of PATH is below the folder of temporary files, or one that is called so.
func isTemporary(element string) bool {
	rest, err := filepath.Rel(filepath.Clean(os.TempDir()), element)
	return err == nil && filepath.IsLocal(rest) || slices.Contains(strings.Split(filepath.ToSlash(element), "/"), "tmp")
}
