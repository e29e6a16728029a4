//go:build unix

package remember_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A file or a folder of another user, and a folder that all can write to, are not used: neither by root.
func TestFilesOfOtherUsers(t *testing.T) {
	for why, spoil := range map[string]func(dir, file string) error{
		"belongs to another user": func(_, file string) error { return os.Chown(file, 1, 1) },
		"chown it to the user":    func(dir, _ string) error { return os.Chown(dir, 1, 1) },
		"can write to":            func(dir, _ string) error { return os.Chmod(dir, 0o777) },
	} {
		t.Run(why, func(t *testing.T) {
			if os.Geteuid() != 0 && why != "can write to" {
				t.Skip("only root gives files to others")
			}
			dir := t.TempDir()
			log, lines := logger()
			remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Learn(kind("a"), said("{}"))
			files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
			ssetest.Must(t, spoil(dir, files[0]))
			if remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Answers(kind("a")) != nil {
				t.Error("it was used")
			}
			if !strings.Contains(lines.String(), why) {
				t.Errorf("the log says %q, want %q in it", lines, why)
			}
		})
	}
}
