//go:build unix

package clientfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A file of another user, as root writes it with sudo, stays that user's, when it is written and when it is restored.
func TestWriteKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root writes files of others")
	}
	for _, name := range []string{"cursor", "codex", "continue"} {
		file, c, e := filepath.Join(t.TempDir(), name), named(t, name), NewEditor(t.TempDir())
		ssetest.Must(t, os.WriteFile(file, nil, 0o600))
		ssetest.Must(t, os.Chown(file, 4711, 4712))
		owner := func() [2]uint32 {
			info, err := os.Stat(file)
			ssetest.Must(t, err)
			is := info.Sys().(*syscall.Stat_t)
			return [2]uint32{is.Uid, is.Gid}
		}
		_, err := e.Write(c, file, []clients.Server{{Name: "docs", URL: address}}, false)
		ssetest.Must(t, err)
		ssetest.WantText(t, "the file", contentOf(t, file), address)
		ssetest.Want(t, name+": the owner after it was written", owner(), [2]uint32{4711, 4712})
		_, err = e.Undo(c, file, "")
		ssetest.Must(t, err)
		ssetest.Want(t, name+": the owner after it was restored", owner(), [2]uint32{4711, 4712})
	}
}
