package ssetest

import (
	"errors"
	"os"
	"testing"
)

// MakePrivateDir makes a directory below the user's cache. Nobody else can write to a directory above it, unlike one below
// the temporary directory: servers start in an empty folder only there. The caller removes it.
func MakePrivateDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		return "", errors.Join(errors.New("the tests need a home directory"), err)
	}
	return os.MkdirTemp(cache, "mcp-sse-test-")
}

// PrivateDir is MakePrivateDir for a test.
func PrivateDir(t testing.TB) string {
	t.Helper()
	dir, err := MakePrivateDir()
	Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a gateway that ends may still write
	return dir
}
