//go:build deploy

package deploytest

import (
	"path/filepath"
	"strings"
	"testing"
)

// The unit is right for systemd, and takes away what servers do not need: an exposure of
// at most 2.0 by systemd's own measure.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze := installed(t, "systemd-analyze")
	unit := filepath.Join(t.TempDir(), "sse-server.service")
	writeFile(t, unit, strings.ReplaceAll(readFile(t, "deploy/sse-server.service"), "/usr/local/bin/sse-server", sseServer(t)))
	if printed := run(t, analyze, "verify", unit); printed != "" {
		t.Errorf("systemd-analyze verify: %s", printed)
	}
	run(t, analyze, "security", "--no-pager", "--offline=true", "--threshold=20", unit)
}
