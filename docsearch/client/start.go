package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/printable"
)

const (
	logFile    = "daemon.log"
	maxLog     = 512 << 10 // a recovery moves the end of a longer log aside
	tailBytes  = 4 << 10   // how much of the log an error looks at
	tailLines  = 5         // how many lines of it an error has
	patience   = 6         // StartTimeouts until a daemon that is not healthy is killed
	reapPeriod = 5 * time.Second
)

// child is a daemon that this process started.
type child struct {
	cmd    *exec.Cmd
	log    string        // path of its log
	offset int64         // where its part of the log starts
	began  time.Time     // when it was started
	ended  chan struct{} // closed when it has ended
}

func (c *Client) logPath() string { return filepath.Join(c.opts.StateDir, logFile) }

// start starts a daemon that outlives this process.
func (c *Client) start() (*child, error) {
	command, err := c.command()
	if err != nil {
		return nil, err
	}
	out, offset, err := openLog(c.logPath())
	if err != nil {
		return nil, stateError(c.opts.StateDir, err)
	}
	defer func() { _ = out.Close() }() // the daemon has its own
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = c.opts.StateDir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		return nil, commandError(command[0], err)
	}
	ch := &child{cmd: cmd, log: c.logPath(), offset: offset, began: time.Now(), ended: make(chan struct{})}
	go func() { // ends with the daemon
		_ = cmd.Wait()
		close(ch.ended)
	}()
	return ch, nil
}

// command returns the command line that starts a daemon. It looks for this executable
// only now: it may have been replaced.
func (c *Client) command() ([]string, error) {
	if len(c.opts.Command) > 0 {
		return c.opts.Command, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, commandError("docsearch", err)
	}
	return []string{exe, "daemon"}, nil
}

func (ch *child) pid() int { return ch.cmd.Process.Pid }

func (ch *child) age() time.Duration { return time.Since(ch.began) }

func (ch *child) exited() bool {
	select {
	case <-ch.ended:
		return true
	default:
		return false
	}
}

// killed reports whether a signal ended the daemon, which has ended.
func (ch *child) killed() bool { return ch.cmd.ProcessState.ExitCode() == -1 }

// failure explains why a daemon that ended is not there.
func (ch *child) failure() error {
	return &DownError{Reason: fmt.Sprintf("it ended at its start (%s)%s", ch.cmd.ProcessState, ch.lastWords()),
		Advice: "fix what its log says: " + ch.log}
}

// giveUp explains that a daemon is not healthy. It leaves it some more time, in which
// it may open a large index, but then kills it: a broken daemon would keep the lock.
func (ch *child) giveUp(timeout time.Duration) error {
	if ch.age() < patience*timeout {
		return &DownError{Reason: fmt.Sprintf("it was not healthy within %v%s", timeout, ch.lastWords()),
			Advice: "try again in a minute; if that does not help, look into " + ch.log}
	}
	_ = ch.cmd.Process.Kill() // fails if it has just ended
	select {
	case <-ch.ended:
	case <-time.After(reapPeriod):
	}
	return &DownError{Reason: fmt.Sprintf("it was not healthy within %v of its start and was ended%s", patience*timeout,
		ch.lastWords()),
		Advice: "try again; if that does not help, look into " + ch.log}
}

// lastWords returns the last lines that the daemon wrote, to append to a sentence.
func (ch *child) lastWords() string {
	data, err := readTail(ch.log, ch.offset)
	if err != nil || len(data) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		lines[i] = printable.Line(line) // names of files are in it, which anyone may have chosen
	}
	return "; it logged: " + strings.Join(lines, " | ")
}

// readTail returns the end of the file, but nothing before offset.
func readTail(path string, offset int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|discovery.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(offset, info.Size()-tailBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	return bytes.ToValidUTF8(data, []byte("?")), err
}

// openLog opens the log to append to. Of one that is long, it moves the end to
// daemon.log.old: a daemon that runs goes on to write to the same file. It returns where
// the next line goes.
func openLog(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND|discovery.NoFollow, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && size > maxLog {
		tail, _ := io.ReadAll(io.NewSectionReader(f, size-maxLog, maxLog))
		_ = discovery.WriteFile(path+".old", tail) // a full disk needs the space
		size, err = 0, f.Truncate(0)
	}
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open log: %w", err), f.Close())
	}
	return f, size, nil
}
