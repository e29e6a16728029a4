// Package clitest has what the tests of the program share.
package clitest

import (
	"os"
	"path/filepath"
	"testing"
)

// Environment returns a LookupEnv of these variables alone.
func Environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// State returns the environment of a program whose state is in a directory of this test, with a short name.
func State(t *testing.T) map[string]string {
	t.Helper()
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return map[string]string{"XDG_STATE_HOME": dir}
}

// WriteFile writes a file in a directory of the test's own, and returns its path.
func WriteFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Must returns the value of a step that does not fail, such as making a request. Otherwise it
// panics.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
