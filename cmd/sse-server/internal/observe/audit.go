package observe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

// AuditLog is the audit log. A line that cannot be written stops no call: it is lost, which
// is logged and counted.
type AuditLog struct {
	*slog.Logger             // nil: there is no audit log
	Lost         func(n int) // counts lines that are lost; set it before the first one
	lines        *LogWriter  // in front of Write
	path         string      // config.Stdout: not a file
	moved        atomic.Bool // the file may have another name

	log  *slog.Logger // limited; what follows belongs to the goroutine of lines
	to   io.Writer
	file *os.File // to, if that is a file
	cut  bool     // to ends in the middle of a line
}

// OpenAudit opens the audit log of c, which may be on stdout. The caller must call Close.
func OpenAudit(c *config.Config, stdout io.Writer, log *slog.Logger) (*AuditLog, error) {
	a := &AuditLog{path: c.AuditLog, to: stdout, Lost: func(int) {}, log: throttle.NewLines().Logger(log)}
	var err error
	switch {
	case a.path == "" || c.Does == "check" && a.path == config.Stdout:
		return a, nil
	case a.path != config.Stdout:
		err = a.open(c.Does != "check")
	case c.Does == "stdio":
		err = errors.New("stdout has the messages; want a file")
	default:
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // once nobody reads, writes fail
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Place("audit-log"), err)
	}
	a.lines = NewLogWriter(a, func(n int64) { a.report(int(n), errors.New("too many lines wait")) })
	a.Logger = NewLogger(a.lines, slog.LevelInfo, "json")
	return a, nil
}

// IsOnStdout reports whether the lines are on stdout, which then has nothing else.
func (a *AuditLog) IsOnStdout() bool { return a.lines != nil && a.path == config.Stdout }

// open opens the file at its end, and makes it if create is set: else a missing one is no error
// where it could be made. It fails for a pipe that nobody reads.
func (a *AuditLog) open(create bool) error {
	flags := os.O_WRONLY | os.O_APPEND | syscall.O_NONBLOCK
	if create {
		flags |= os.O_CREATE
	}
	file, err := os.OpenFile(a.path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) && !create {
		_, err = os.Stat(filepath.Dir(a.path))
	} else if err == nil {
		_ = a.file.Close()
		a.to, a.file = file, file
		if info, failed := file.Stat(); failed == nil && info.Mode().IsRegular() {
			a.cut = isCut(a.path, info.Size())
		}
	}
	return err
}

// isCut reports whether a file of this size ends in the middle of a line.
func isCut(path string, size int64) bool {
	file, err := os.Open(path)
	if err != nil { // it may be for writing only
		return false
	}
	defer file.Close()
	last := make([]byte, 1)
	n, _ := file.ReadAt(last, size-1)
	return n == 1 && last[0] != '\n'
}

// Reopen makes the next line go to the file that has the name then.
func (a *AuditLog) Reopen() { a.moved.Store(a.path != config.Stdout) }

// Write writes one line. After a part of one, it begins another.
func (a *AuditLog) Write(line []byte) (int, error) {
	if a.moved.Swap(false) {
		if err := a.open(true); err != nil {
			a.log.Error("audit log not reopened", "err", err)
		}
	}
	if a.cut {
		line = append([]byte("\n"), line...)
	}
	n, err := a.to.Write(line)
	if n > 0 {
		a.cut = line[n-1] != '\n'
	}
	if err != nil {
		a.report(1, err)
	}
	return n, err
}

func (a *AuditLog) report(lines int, err error) {
	a.Lost(lines)
	a.log.Error("audit log not written", "lines", lines, "err", err)
}

// Close writes the lines that wait, within a second. The others are lost.
func (a *AuditLog) Close() {
	if a.lines == nil {
		return
	}
	if left := a.lines.Close(); left > 0 {
		a.report(left, errors.New("the end waits for a second only"))
	}
}
