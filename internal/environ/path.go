package environ

import (
	"fmt"
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

// PathKey returns what stays the same of a PATH as long as it should find the same programs: its elements, but of
// a temporary one the names of the files in it. So a session of an agent is like the one before, and a
// temporary folder with another program is not. It reads the file system.
func PathKey(path string) string {
	var key []string
	for _, element := range filepath.SplitList(path) {
		if !isTemporary(element) {
			key = append(key, element)
			continue
		}
		files, _ := os.ReadDir(element) // sorted; what cannot be read finds no program
		for _, file := range files {
			key = append(key, "/tmp/"+file.Name())
		}
	}
	return fmt.Sprintf("%q", key)
}

// isTemporary reports whether an element of PATH is below the folder of temporary files, or one that is called so.
func isTemporary(element string) bool {
	rest, err := filepath.Rel(filepath.Clean(os.TempDir()), element)
	return err == nil && filepath.IsLocal(rest) || slices.Contains(strings.Split(filepath.ToSlash(element), "/"), "tmp")
}
