package main

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite docs/reference/config.md from the flags")

// childVariable makes this test's own program the demo server on stdin and stdout,
// programVariable makes it sse-server.
const (
	childVariable   = "SSE_SERVER_TEST_CHILD"
	programVariable = "SSE_SERVER_TEST_PROGRAM"
)

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
	}
	if os.Getenv(childVariable) != "" {
		if err := newDemo().serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// environment makes a LookupEnv.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// loadWith loads a configuration that need not be right.
func loadWith(t *testing.T, env map[string]string, args ...string) (*loaded, []string) {
	t.Helper()
	l, faults, err := load(args, environment(env), io.Discard)
	if err != nil {
		t.Fatalf("load %q: %v", args, err)
	}
	return l, faults
}

// mustLoad loads a configuration that must be right.
func mustLoad(t *testing.T, env map[string]string, args ...string) *loaded {
	t.Helper()
	l, faults := loadWith(t, env, args...)
	if len(faults) > 0 {
		t.Fatalf("load %q: got faults\n%s", args, strings.Join(faults, "\n"))
	}
	return l
}

// writeFile writes a file in a directory of the test's own.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// settingOf is the setting of a flag.
func settingOf(t *testing.T, l *loaded, name string) setting {
	t.Helper()
	for _, flag := range l.flags {
		if flag.Name == name {
			return flag.Target.Addr().Interface().(setting)
		}
	}
	t.Fatalf("no flag --%s", name)
	return nil
}
