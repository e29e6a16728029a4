//go:build deploy

package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The units are right for systemd, and take away what servers do not need: an exposure of
// at most 2.0 by systemd's own measure.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze := installed(t, "systemd-analyze")
	dir := t.TempDir()
	unit, socket := filepath.Join(dir, "sse-server.service"), filepath.Join(dir, "sse-server.socket")
	writeFile(t, unit, strings.ReplaceAll(readFile(t, "deploy/sse-server.service"), "/usr/local/bin/sse-server", sseServer(t)))
	writeFile(t, socket, readFile(t, "deploy/sse-server.socket"))
	if printed := run(t, analyze, "verify", unit, socket); printed != "" {
		t.Errorf("systemd-analyze verify: %s", printed)
	}
	run(t, analyze, "security", "--no-pager", "--offline=true", "--threshold=20", unit)
}

// The unit that service install writes for a user is right for systemd, also with names that its words and specifiers
// could break.
func TestUnitOfAUser(t *testing.T) {
	t.Parallel()
	analyze := installed(t, "systemd-analyze")
	home := filepath.Join(t.TempDir(), "a $HOME of 100%")
	bin, file := filepath.Join(home, "bin"), filepath.Join(home, "servers.yaml")
	ssetest.Must(t, os.MkdirAll(bin, 0o700))
	writeFile(t, file, "servers: {files: {command: [cat]}}\n")
	for _, name := range []string{"systemctl", "loginctl"} { // nothing is installed on this machine
		ssetest.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700))
	}
	// The state is at another place: a socket has a short path. The program of the test is in a temporary folder, which
	// install refuses.
	env := []string{"HOME=" + home, "XDG_STATE_HOME=" + ssetest.PrivateDir(t), "PATH=" + bin + ":/usr/bin:/bin",
		"TMPDIR=" + filepath.Join(home, "tmp")}
	install := exec.CommandContext(t.Context(), sseServer(t), "service", "install", "--config", file)
	install.Env = env
	if printed, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", install, err, printed)
	}
	unit := filepath.Join(home, ".config", "systemd", "user", "sse-server.service")
	verify := exec.CommandContext(t.Context(), analyze, "verify", "--user", unit)
	verify.Env = append(env, "XDG_RUNTIME_DIR="+ssetest.PrivateDir(t))
	if printed, err := verify.CombinedOutput(); err != nil || len(printed) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, printed, readAll(t, unit))
	}
}
