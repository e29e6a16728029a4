package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

const (
	// readBytes is the size of the read buffer for stdout.
	readBytes = 32 << 10
	// batchBytes is how much is written to stdin at once, so that many small
	// messages need few system calls.
	batchBytes = 64 << 10
	// drainTimeout bounds the wait for pipes that another process holds open
	// after the child has exited.
	drainTimeout = 250 * time.Millisecond
	// maxPipeBytes is the largest capacity of a pipe that an unprivileged
	// process can set (Linux, fs.pipe-max-size): what the child itself wrote
	// before its exit is not more.
	maxPipeBytes = 1 << 20
)

// child is one session with a child process.
type child struct {
	cmd  Command
	proc *exec.Cmd
	log  *slog.Logger
	born time.Time // when the process ran

	out     *buffer.Queue // messages for stdin
	stdin   *os.File      // owned by write
	stdout  *os.File      // read by Recv, and by discard after Close has begun
	stderr  *os.File      // owned by drain
	written chan struct{}
	drained chan struct{}
	ended   chan struct{} // closed by supervise when the process is reaped
	exit    error         // why the session ended; set before ended is closed, as the next two
	hint    string        // what it last wrote to stderr
	young   bool          // it died soon after its start
	notes   stderrLog     // owned by drain until drained is closed

	mu     sync.Mutex // guards the two below
	reaped bool       // the process id may belong to another process
	cause  error      // why we ended the process, other than Close

	closing  chan struct{} // closed when Close begins
	closed   sync.Once
	closeErr error

	readMu   sync.Mutex // held by the one who reads stdout; guards below
	buf      []byte
	unread   []byte // part of buf
	split    *buffer.Splitter
	messages int  // received
	late     int  // bytes read after the exit
	last     bool // a read after the exit has timed out once
	final    error
	invalid  *rate.Limiter // of logging lines that are not JSON
	muted    int           // such lines since the last one logged
}

func newChild(c Command) *child {
	return &child{
		cmd:     c,
		log:     c.Logger,
		out:     buffer.NewQueue(buffer.SendLimit),
		written: make(chan struct{}),
		drained: make(chan struct{}),
		ended:   make(chan struct{}),
		closing: make(chan struct{}),
		split:   buffer.NewSplitter(c.MaxLineBytes),
		invalid: rate.NewLimiter(rate.Every(time.Second), 5),
	}
}

// Send queues msg for the child's stdin.
func (c *child) Send(msg []byte) error { return c.out.Offer(msg) }

// write is the goroutine that owns stdin. It ends when out does, or when the
// child no longer reads: closing stdin unblocks it.
func (c *child) write() {
	defer close(c.written)
	defer c.stdin.Close()
	var buf []byte
	for {
		msg, err := c.out.Pop()
		if err != nil {
			return
		}
		buf = append(append(buf[:0], msg...), '\n')
		for len(buf) < batchBytes {
			if msg, ok := c.out.Poll(); ok {
				buf = append(append(buf, msg...), '\n')
				continue
			}
			break
		}
		if _, err := c.stdin.Write(buf); err != nil {
			c.unwritable(err)
			return
		}
		if cap(buf) > 2*batchBytes {
			buf = nil // one large message must not stay with an idle session
		}
	}
}

// unwritable ends the session of a child that closed its stdin: no request
// could reach it any more. Most often it is about to exit and says itself why.
func (c *child) unwritable(err error) {
	select {
	case <-c.closing:
		return
	default:
	}
	if c.waitEnded(c.cmd.CloseTimeout) {
		return
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // the name of a pipe tells nothing
	}
	c.mu.Lock()
	c.cause = fmt.Errorf("server closed its stdin: %w", err)
	c.mu.Unlock()
	_ = c.kill() // logged there
}

// Recv returns the next line on the child's stdout that looks like JSON.
func (c *child) Recv() ([]byte, error) {
	if c.isClosing() {
		return nil, jsonrpc.ErrClosed
	}
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for c.final == nil {
		msg, err := c.nextLocked()
		if msg != nil || err != nil {
			return msg, err
		}
		if c.isClosing() {
			return nil, jsonrpc.ErrClosed
		}
		if err := c.fillLocked(); err != nil {
			if msg := c.remainderLocked(); msg != nil && !c.isClosing() {
				return msg, nil
			}
			c.final = c.reason(err)
		}
	}
	if c.isClosing() {
		return nil, jsonrpc.ErrClosed
	}
	return nil, c.final
}

// nextLocked returns a message of what has been read, nil when there is none.
func (c *child) nextLocked() ([]byte, error) {
	for len(c.unread) > 0 {
		var (
			line []byte
			err  error
		)
		line, c.unread, err = c.split.Next(c.unread)
		if err != nil {
			return nil, err
		}
		if msg := c.acceptLocked(line); msg != nil {
			return msg, nil
		}
	}
	return nil, nil
}

// remainderLocked returns a last message that the child did not end with a
// newline, nil when there is none.
func (c *child) remainderLocked() []byte {
	rest := bytes.TrimSpace(c.split.Last())
	switch {
	case json.Valid(rest):
		return c.acceptLocked(rest)
	case len(rest) > 0:
		c.cmd.Metrics.ChildInvalidLine()
		c.log.Warn("server ended in the middle of a message", "bytes", len(rest))
	}
	return nil
}

// acceptLocked returns the message in a line, nil when there is none.
func (c *child) acceptLocked(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	if line[0] == '{' || line[0] == '[' {
		c.messages++
		return line
	}
	c.cmd.Metrics.ChildInvalidLine()
	c.log.Debug("server wrote a line that is not json", "bytes", len(line), "line", excerpt(line, maxExcerpt))
	if c.invalid.Allow() {
		c.log.Warn("server writes lines that are not json to stdout", "bytes", len(line), "suppressed", c.muted)
		c.muted = 0
	} else {
		c.muted++
	}
	return nil
}

// fillLocked reads from stdout. After the child's exit it reads what is left in
// the pipe, also when another process holds the pipe open.
func (c *child) fillLocked() error {
	if c.buf == nil {
		c.buf = make([]byte, readBytes)
	}
	for {
		n, err := c.stdout.Read(c.buf)
		c.unread = c.buf[:n]
		switch {
		case n > 0:
			if c.hasEnded() {
				c.late += n
				c.last = false
			}
			if c.late > maxPipeBytes {
				return io.EOF
			}
			return nil
		case c.isClosing():
			return jsonrpc.ErrClosed
		case errors.Is(err, os.ErrDeadlineExceeded) && !c.last:
			// The exit interrupted the read. Look once more at what is there.
			c.last = true
			_ = c.stdout.SetReadDeadline(time.Now().Add(drainTimeout))
		case err == nil:
			return io.ErrNoProgress
		default:
			return err
		}
	}
}

// reason says why a session whose stdout has ended is over.
func (c *child) reason(err error) error {
	timer := time.NewTimer(c.cmd.CloseTimeout)
	defer timer.Stop()
	select {
	case <-c.closing:
		return jsonrpc.ErrClosed
	case <-c.ended:
		return c.lastWords()
	case <-timer.C:
		if errors.Is(err, io.EOF) {
			return errors.New("server closed its stdout and went on running")
		}
		return fmt.Errorf("read stdout of server: %w", err)
	}
}

// lastWords is explained once all messages have been read.
func (c *child) lastWords() error {
	silent, orderly := c.messages == 0, errors.Is(c.exit, io.EOF)
	if silent && orderly {
		return silentExit{hint: c.hint}
	}
	return c.explained(silent || c.young && !orderly)
}

// silentExit is the io.EOF of a server that never spoke the protocol: most often
// a program that is none, or one that wants arguments.
type silentExit struct{ hint string }

func (e silentExit) Error() string {
	const what = "exit status 0, wrote no JSON-RPC to stdout"
	if e.hint == "" {
		return what
	}
	return what + "; stderr: " + e.hint
}

func (silentExit) Unwrap() error { return io.EOF }

func (c *child) isClosing() bool { return isClosed(c.closing) }

func (c *child) hasEnded() bool { return isClosed(c.ended) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
