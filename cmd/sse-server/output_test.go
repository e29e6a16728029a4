package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// output runs sse-server as a process of its own that ends by itself, and returns
// what it prints and its exit code.
func output(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = []string{programVariable + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run sse-server %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestSubcommands(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "check"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	stdout, stderr, code := output(t, "--addr", "127.0.0.1:0", "check", "--warm", "7", "--", "check") // a word after -- is a program
	if code != 0 || stdout != "configuration ok\n" {
		t.Errorf("exit code %d, prints\n%s%s\nwant the verdict", code, stdout, stderr)
	}
	if _, stderr, code = output(t, "check", "me"); code != exitConfig || !strings.Contains(stderr, `unexpected argument "me"`) {
		t.Errorf("check me: exit code %d, prints %s", code, stderr)
	}
}
