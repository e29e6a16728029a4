package ssetest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"testing"
)

// MakePrivateDir makes a directory that nobody else can have files above, unlike one below the temporary directory:
// servers start in an empty folder only there. It is below the first of these that allows that: the user's cache, home
// and runtime directory, and directories of root. The caller removes it.
func MakePrivateDir() (string, error) {
	var places []string
	if cache, err := os.UserCacheDir(); err == nil {
		places = append(places, cache)
	}
	if u, err := user.Current(); err == nil {
		places = append(places, u.HomeDir)
	}
	places = append(places, fmt.Sprintf("/run/user/%d", os.Getuid()), "/var/lib", "/opt")
	var all error
	for _, place := range places {
		dir, err := privateDirIn(place)
		if err == nil {
			return dir, nil
		}
		all = errors.Join(all, err)
	}
	return "", fmt.Errorf("the tests need a directory that no other user can write above, such as a home: %w", all)
}

func privateDirIn(place string) (string, error) {
	if err := os.MkdirAll(place, 0o700); err != nil {
		return "", err
	}
	at, err := filepath.EvalSymlinks(place)
	if err != nil {
		return "", err
	}
	for above := at; above != filepath.Dir(above); above = filepath.Dir(above) {
		if info, err := os.Stat(above); err != nil || info.Mode().Perm()&0o002 != 0 {
			return "", errors.Join(err, fmt.Errorf("all users can write to %s", above))
		}
	}
	return os.MkdirTemp(place, "mcp-sse-test-")
}

// PrivateDir is MakePrivateDir for a test.
func PrivateDir(t testing.TB) string {
	t.Helper()
	dir, err := MakePrivateDir()
	Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a gateway that ends may still write
	return dir
}
