//go:build unix

package model2vec_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/model2vec"
)

// A pipe in the place of a file is refused: nobody may ever write to it.
func TestPipeIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, model2vec.TokenizerFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := model2vec.Open(dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
}
