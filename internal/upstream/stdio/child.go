package stdio

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// readBytes is the size of the read buffer for stdout.
	readBytes = 32 << 10
	// drainTimeout bounds the wait for pipes that another process holds open
	// after the child has exited.
	drainTimeout = 250 * time.Millisecond
	// maxPipeBytes is the largest capacity that an unprivileged process can give a pipe
	// (Linux, fs.pipe-max-size). The child itself left no more in it at its exit.
	maxPipeBytes = 1 << 20
)

var _ wire.Formed = (*child)(nil)

// child is one session with a child process.
type child struct {
	cmd  Command
	proc *exec.Cmd
	log  *slog.Logger
	born time.Time // when the process was started

	limits  *throttle.Lines // of what the child can cause to be logged
	limited *slog.Logger    // log under limits; nil before the process is started

	stdin   stdin
	stdout  *os.File // read by Recv, and by discard after Close has begun
	stderr  *os.File // owned by drain
	drained chan struct{}
	ended   chan struct{} // closed by supervise when the process is reaped
	exit    error         // why the session ended; this and the next two are set before ended is closed
	words   string        // what stderr said last
	parting string        // those of the words that came shortly before the end
	notes   stderrLog

	heard  atomic.Bool // it has sent a message
	inLine atomic.Bool // the last that it wrote to stdout ends no line
	// printed is the last text on stdout before any message.
	printed     atomic.Pointer[string]
	stdoutFault atomic.Pointer[string] // what it does wrong on stdout, of which it has written no message; nil: nothing

	mu     sync.Mutex // guards the two below
	reaped bool       // the process id may belong to another process now
	cause  error      // why the gateway ended the process, other than by Close

	closing  chan struct{} // closed when Close begins
	closed   sync.Once
	closeErr error

	readMu   sync.Mutex    // held while reading stdout; guards all below
	lines    *bufio.Reader // of stdout
	messages int           // received
	pending  []message     // those of the last line that RecvForm has not returned
	parts    bool          // the last line began JSON over several lines, or was a part of it
	text     string        // the beginning of the first line that was no JSON
	late     int           // bytes read after the exit
	last     bool          // a read after the exit has timed out once
	readErr  error         // why there are no more lines; nil before
	final    error         // what Recv returns from then on; nil before
}

// exitGrace is how long a child that has closed its stdin or stdout may take to exit, so that its
// exit gives the reason. It is no part of closing a child: see Command.CloseTimeout for that. It
// is a variable for tests.
var exitGrace = 2 * time.Second

func newChild(c Command) *child {
	child := &child{
		cmd:     c,
		log:     c.Logger,
		drained: make(chan struct{}),
		ended:   make(chan struct{}),
		closing: make(chan struct{}),
		limits:  throttle.NewLines(),
	}
	child.stdin.broken = child.unwritable
	child.lines = bufio.NewReaderSize(stdout{child}, readBytes)
	return child
}

// Send writes msg to the child's stdin, or keeps it until the pipe has room.
func (c *child) Send(msg []byte) error { return c.stdin.send(msg) }

// unwritable ends the session of a child that has closed its stdin: no request can
// reach it. Most often the child is about to exit, which then says why.
func (c *child) unwritable(err error) {
	if c.isClosing() || c.waitEnded(exitGrace) {
		return
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // without the name of the pipe
	}
	c.mu.Lock()
	if !c.reaped { // else the exit is the cause
		c.cause = fmt.Errorf("server closed its stdin: %w", err)
	}
	c.mu.Unlock()
	_ = c.kill() // logs its error
}

// Recv returns the next message on the child's stdout that is wire.Plain. See
// [Command.Dial] for its errors.
func (c *child) Recv() ([]byte, error) {
	for {
		if msg, _, form, err := c.RecvForm(); err != nil || form == wire.Plain {
			return msg, err
		}
	}
}

// RecvForm returns the next message on the child's stdout, and its form. The request is unknown.
func (c *child) RecvForm() ([]byte, jsonrpc.ID, wire.Form, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for c.final == nil && !c.isClosing() {
		if len(c.pending) > 0 {
			next := c.pending[0]
			c.pending = c.pending[1:]
			return next.data, "", next.form, nil
		}
		var line []byte
		if c.readErr == nil { // it stays, and the last line may come with it
			line, c.readErr = wire.ReadLine(c.lines, c.cmd.MaxLineBytes)
		}
		if len(c.pending) == 0 {
			c.pending = c.accept(line, c.readErr != nil)
		}
		if c.readErr != nil && len(c.pending) == 0 {
			c.limits.Flush(c.log)
			c.final = c.reason(c.readErr)
		}
	}
	if c.isClosing() {
		return nil, "", wire.Plain, jsonrpc.ErrClosed
	}
	return nil, "", wire.Plain, c.final
}

// accept returns the messages in a line. cut says that stdout ended before the line did.
func (c *child) accept(line []byte, cut bool) []message {
	found := read(line, c.parts)
	if len(found.text) > 0 {
		c.reportText(found.text)
	}
	if cut {
		all := len(found.messages)
		whole := slices.DeleteFunc(found.messages, func(m message) bool { return !json.Valid(m.data) })
		if len(whole) < all || found.part {
			c.log.Warn("server ended in the middle of a message", "bytes", len(line))
			c.cmd.Metrics.Dropped(metrics.DroppedInvalidMessage)
			found = content{messages: whole}
		}
	}
	if found.part && !c.parts {
		c.limited.Warn("server writes json over several lines: stdout is for MCP, one JSON message a line", "bytes",
			len(line))
		c.noteStdoutFault(writesJSONOverLines)
	}
	c.parts = found.part
	if len(found.messages) > 0 {
		if found.messages[0].form != wire.AfterWords { // else it may be a text
			c.messages += len(found.messages)
			c.heard.Store(true)
			c.stdoutFault.Store(nil)
		}
		for i, m := range found.messages {
			found.messages[i].data = valid(m.data)
		}
		return found.messages
	}
	if found.part || len(found.text) > 0 {
		c.cmd.Metrics.Dropped(metrics.DroppedInvalidMessage)
	}
	return nil
}

// reportText logs the beginning of a text that is no message.
func (c *child) reportText(text []byte) {
	short := excerpt(bytes.ToValidUTF8(text, []byte("\uFFFD")), maxText)
	c.text = cmp.Or(c.text, short)
	if c.messages == 0 {
		c.printed.Store(&short)
	}
	if bytes.HasPrefix(text, []byte("Content-Length:")) {
		c.noteStdoutFault(writesFrames)
	} else {
		c.noteStdoutFault(writesText)
	}
	c.limited.Warn("server writes text to stdout: stdout is for MCP, one JSON message a line; log to stderr", "text",
		short, "bytes", len(text))
}

// Each of these says what a server that has written no message does wrong on stdout, and what to do. Errors
// append it.
const (
	writesText = "; it writes text to stdout, which is for MCP messages: " +
		"start it in its stdio mode, and have it log to stderr"
	writesFrames        = "; it sends Content-Length before each message: MCP over stdio has one JSON message a line"
	writesJSONOverLines = "; it writes JSON over several lines: MCP over stdio has one JSON message a line"
	endsNoLine          = "; it does not end the line that it writes to stdout: each MCP message ends with a newline"
	readsNothing        = "; it has not read what was sent to its stdin: " +
		"it still boots, or has to be started in its stdio mode"
)

// noteStdoutFault notes what a child that has sent no message does wrong.
func (c *child) noteStdoutFault(fault string) {
	if c.messages == 0 {
		c.stdoutFault.CompareAndSwap(nil, &fault)
	}
}

// LastWords returns the last lines of the child's stderr that say something, with LineBreak between them.
func (c *child) LastWords() string { return c.notes.hint(time.Time{}) }

// Printed returns the last text that the child has written to stdout before any message.
func (c *child) Printed() string {
	if text := c.printed.Load(); text != nil {
		return *text
	}
	return ""
}

// excuse says what a child that runs and has sent no message does wrong, "" if nothing is
// known.
func (c *child) excuse() string {
	switch fault := c.stdoutFault.Load(); {
	case fault != nil:
		return *fault
	case c.inLine.Load():
		return endsNoLine
	case !c.heard.Load() && c.stdin.unread():
		return readsNothing
	}
	return ""
}

// stdout reads a child's stdout. After the child's exit it reads what is left in the pipe,
// even if another process holds the pipe open.
type stdout struct{ *child }

// Read reads from the pipe.
func (c stdout) Read(p []byte) (int, error) {
	for {
		n, err := c.stdout.Read(p)
		switch {
		case c.isClosing():
			return 0, jsonrpc.ErrClosed
		case n > 0 && !closed.Is(c.ended):
			c.inLine.Store(p[n-1] != '\n')
			return n, nil
		case n > 0:
			c.last = false
			c.late += n
			if c.late > maxPipeBytes {
				return 0, io.EOF
			}
			return n, nil
		case errors.Is(err, os.ErrDeadlineExceeded) && !c.last:
			// The exit interrupted the read: read once more what is there.
			c.last = true
			_ = c.stdout.SetReadDeadline(time.Now().Add(drainTimeout))
		case err == nil:
			return 0, io.ErrNoProgress
		default:
			return 0, err
		}
	}
}

// reason returns why the session is over when stdout can be read no further.
func (c *child) reason(err error) error {
	if errors.Is(err, jsonrpc.ErrTooLong) {
		return fmt.Errorf("server sent a %w of %d bytes", err, c.cmd.MaxLineBytes)
	}
	select {
	case <-c.closing:
		return jsonrpc.ErrClosed
	case <-c.ended:
		return c.exitReason()
	case <-time.After(exitGrace):
		switch cause := c.endedFor(); {
		case cause != nil: // the gateway has killed it, and the system is slow
			return cause
		case errors.Is(err, io.EOF):
			return errors.New("server closed its stdout and went on running")
		}
		return fmt.Errorf("read stdout of server: %w", err)
	}
}

// exitReason returns the reason for Recv after an exit, when all messages are read.
func (c *child) exitReason() error {
	silent, orderly := c.messages == 0, errors.Is(c.exit, io.EOF)
	if silent && orderly { // most often it is not an MCP server, or needs arguments
		what := errExitZero.Error() + ", wrote no JSON-RPC to stdout"
		if c.text != "" {
			what += ", but text: " + c.text
		}
		if c.words != "" {
			what += "; stderr: " + c.words
		}
		return orderlyExit(what)
	}
	if silent {
		return c.explained(c.words)
	}
	return c.explained(c.parting)
}

// orderlyExit is the io.EOF of a program that has exited with status 0. It is the text.
type orderlyExit string

const errExitZero orderlyExit = "exit status 0"

func (e orderlyExit) Error() string { return string(e) }

func (orderlyExit) Unwrap() error { return io.EOF }

// Exited marks the end of a program.
func (orderlyExit) Exited() {}

// exit is any other end of a program. It is the text.
type exit string

func (e exit) Error() string { return string(e) }

// Exited marks the end of a program.
func (exit) Exited() {}

func (c *child) isClosing() bool { return closed.Is(c.closing) }
