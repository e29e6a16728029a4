package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// partingTime is how long before a child's death the lines of its stderr may have come that explain it.
	partingTime = 5 * time.Second
	// killTimeout is how long a process may take to die of SIGKILL. It is no option: only
	// the kernel delays a kill, when memory or disks are slow.
	killTimeout = 5 * time.Second
)

// supervise starts the process and waits for it. It holds its thread all the time: on
// Linux the kernel kills the child when the thread that forked it ends
// (golang/go#27505), and no other goroutine can end a locked thread.
func (c *child) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	if err := c.start(); err != nil {
		c.cmd.Metrics.ChildStartFailed()
		started <- c.cmd.explain(err)
		return
	}
	c.born = time.Now()
	c.cmd.Metrics.ChildStarted()
	c.log = c.log.With("command", c.cmd.name(), "pid", c.proc.Process.Pid)
	c.limited = c.limits.Logger(c.log)
	c.log.Info("server started", "duration", c.born.Sub(begin))
	c.cmd.running.Store(c, nil)
	defer c.cmd.running.Delete(c)
	go c.drain()
	started <- nil
	c.reap()
	c.settle()
}

// start makes the pipes and the process. It closes the ends that the process inherits
// in any case, and the others if it fails.
func (c *child) start() (err error) {
	var ours, theirs []*os.File
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll(ours)
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	ours, theirs = []*os.File{inW, outR, errR}, []*os.File{inR, outW, errW}
	if err != nil {
		return err
	}
	c.stdout, c.stderr = outR, errR
	c.stdin.open(inW)
	c.proc = exec.Command(c.cmd.Path, c.cmd.Args...)
	c.proc.Env, c.proc.Dir = append(c.cmd.ofProcess(), environ.ForChild(c.cmd.Route)), c.cmd.Dir
	c.proc.Stdin, c.proc.Stdout, c.proc.Stderr = inR, outW, errW
	c.proc.SysProcAttr = processAttr()
	return c.proc.Start()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written; Close refuses a nil file
	}
}

// reap waits for the end of the process, kills what is left of its group, and frees
// its id, in this order: until the process is reaped, no other group can have its id.
func (c *child) reap() {
	waited := awaitExit(c.proc.Process.Pid)
	if waited {
		c.leave()
	}
	_ = c.proc.Wait() // ProcessState has the result
	if !waited {
		c.leave()
	}
}

// leave ends the group, and lets nothing be sent any more.
func (c *child) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = killGroup(c.proc.Process) // most often nothing is left
	c.reaped = true
	c.stdin.end(errExited)
}

// errExited is what Send returns after the end of the process.
var errExited = errors.New("the server has exited")

// settle notes and logs why the process ended, after its stderr has been read.
func (c *child) settle() {
	_ = c.stdin.pipe.Close()
	_ = c.stderr.SetReadDeadline(time.Now().Add(drainTimeout))
	died := time.Now()
	select {
	case <-c.drained:
		c.words, c.parting = c.notes.hint(time.Time{}), c.notes.hint(died.Add(-partingTime))
	case <-time.After(2 * drainTimeout): // pipes have no deadlines on this system
	}
	var reason string
	reason, c.exit = c.verdict()
	if errors.Is(c.exit, io.EOF) { // an orderly end needs no reason
		c.parting = ""
	}
	c.cmd.Metrics.ChildExited(reason)
	level := slog.LevelInfo
	if reason == metrics.ChildError || reason == metrics.ChildSignal {
		level = slog.LevelWarn
	}
	c.log.Log(context.Background(), level, "server exited", "reason", reason, "status", exitText(c.proc.ProcessState),
		"duration", time.Since(c.born))
	c.stdin.abort(c.explained(c.parting))
	close(c.ended)
	if !c.isClosing() {
		_ = c.stdout.SetReadDeadline(time.Now().Add(drainTimeout))
	}
}

// endedFor returns why the gateway ended the process, other than by Close; nil if it did not.
func (c *child) endedFor() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// verdict returns the reason for the metrics and the error for Recv.
func (c *child) verdict() (string, error) {
	cause, state := c.endedFor(), c.proc.ProcessState
	switch {
	case c.isClosing():
		return metrics.ChildClosed, jsonrpc.ErrClosed
	case cause != nil:
		return metrics.ChildClosed, cause
	case state.Success():
		return metrics.ChildOK, errExitZero
	case signalled(state):
		return metrics.ChildSignal, exit(exitText(state))
	}
	return metrics.ChildError, exit(exitText(state))
}

// explained returns exit, with the words of stderr that are likely to be the reason.
func (c *child) explained(words string) error {
	if words == "" || errors.Is(c.exit, jsonrpc.ErrClosed) {
		return c.exit
	}
	return fmt.Errorf("%w; stderr: %s", c.exit, words)
}

// Close ends the process; see [Command.Dial]. It is safe for concurrent use.
func (c *child) Close() error {
	c.closed.Do(func() {
		close(c.closing)
		_ = c.stdin.pipe.SetWriteDeadline(time.Now().Add(c.cmd.CloseTimeout))
		c.stdin.end(jsonrpc.ErrClosed)
		past := time.Unix(1, 0)
		_ = c.stdout.SetReadDeadline(past) // unblocks Recv
		discarded := make(chan struct{})
		go c.discard(discarded)
		if !c.waitEnded(c.cmd.CloseTimeout) {
			c.closeErr = c.kill()
		}
		// This ends all who still read or write a pipe, if it has a poller.
		c.stdin.abort(jsonrpc.ErrClosed)
		_ = c.stdout.Close()
		if c.closeErr == nil && !c.stdin.blocks {
			c.stdin.writer.Wait()
			<-discarded
		}
		c.limits.Flush(c.log)
	})
	return c.closeErr
}

// discard reads what a child writes while it is being closed, so that no write blocks
// it. It ends when stdout ends.
func (c *child) discard(done chan<- struct{}) {
	defer close(done)
	c.readMu.Lock()
	defer c.readMu.Unlock()
	_ = c.stdout.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, c.stdout)
}

// kill ends the process with SIGTERM, and then with SIGKILL.
func (c *child) kill() error {
	c.signal(terminateGroup)
	if c.waitEnded(c.cmd.CloseTimeout) {
		return nil
	}
	c.signal(killGroup)
	if c.waitEnded(killTimeout) {
		return nil
	}
	err := fmt.Errorf("close: process %d survived SIGKILL for %s", c.proc.Process.Pid, killTimeout)
	c.log.Error("server cannot be killed", "err", err)
	return err
}

func (c *child) signal(step func(*os.Process) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if err := step(c.proc.Process); err != nil {
		c.log.Debug("signal server", "err", err)
	}
}

// waitEnded waits for the end of the process, and reports false after limit.
func (c *child) waitEnded(limit time.Duration) bool {
	select {
	case <-c.ended:
		return true
	case <-time.After(limit):
		return false
	}
}
