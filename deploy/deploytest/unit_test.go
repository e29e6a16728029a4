//go:build deploy

package deploytest

import (
	"path/filepath"
	"strings"
	"testing"
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
