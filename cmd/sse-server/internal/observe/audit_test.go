package observe

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// short is a file on a disk that is full after so many bytes.
type short struct {
	bytes.Buffer
	room int
}

func (s *short) Write(p []byte) (n int, err error) {
	if n = min(len(p), s.room); n < len(p) {
		err = syscall.ENOSPC
	}
	s.room -= n
	s.Buffer.Write(p[:n])
	return n, err
}

// A part of a line that was written when the disk got full spoils no other line.
func TestAuditLogOnAFullDisk(t *testing.T) {
	file := &short{room: 5}
	a := &AuditLog{to: file, Lost: func(int) {}, log: slog.New(slog.DiscardHandler)}
	for _, room := range []int{5, 0, 10, 10} {
		file.room = room
		_, _ = a.Write([]byte("{1234}\n"))
	}
	ssetest.Want(t, "audit log", file.String(), "{1234\n{1234}\n{1234}\n")
}

// A part of a line that was written before a restart spoils no other line either, and none in the next file.
func TestAuditLogAfterAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	a := &AuditLog{path: path, Lost: func(int) {}, log: slog.New(slog.DiscardHandler)}
	for want, left := range map[string]string{"{12\n{1234}\n": "{12", "{12}\n{1234}\n": "{12}\n", "{1234}\n": ""} {
		ssetest.Must(t, os.WriteFile(path, []byte(left), 0o600))
		a.cut = true // of the file before
		a.Reopen()
		_, _ = a.Write([]byte("{1234}\n"))
		got, err := os.ReadFile(path)
		ssetest.Must(t, err)
		ssetest.Want(t, "audit log", string(got), want)
	}
	_ = a.file.Close()
}

// Lines for which the end does not wait are counted and logged.
func TestAuditLogThatStallsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var log bytes.Buffer
		lost := 0
		a := &AuditLog{to: w, Lost: func(n int) { lost += n }, log: slog.New(slog.NewTextHandler(&log, nil))}
		a.lines = NewLogWriter(a, nil)
		for range 3 {
			_, _ = a.lines.Write([]byte("{1234}\n"))
		}
		a.Close()
		if lost != 3 || !strings.Contains(log.String(), "lines=3") {
			t.Errorf("%d lines are lost, and the log has %s", lost, &log)
		}
		a.Lost, a.log = func(int) {}, slog.New(slog.DiscardHandler)
		_ = r.Close() // ends the write
		<-a.lines.done
	})
}
