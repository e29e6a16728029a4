package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// serveCloseTimeout bounds each of the two waits of Close for the function: after the
// end of its input, and after the end of its context.
const serveCloseTimeout = time.Second

// Serve serves in process over newline-delimited JSON: the function runs one session.
// It reads the client's messages from in, which ends when the session is closed, and
// writes the server's messages to out. A Write blocks until Recv has read it, and fails
// after Close. A line over 16 MiB ends the session with jsonrpc.ErrTooLong. The function
// must return when in ends or ctx is cancelled. When it returns, or panics, the session is
// over.
type Serve func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error

// Dial starts the function in the only goroutine of the session. The function's context
// has the values of ctx that CallerValues returns. Dial fails only when ctx has ended.
//
// After the function has returned, Recv returns its error, or io.EOF for nil. Close
// ends in. A second later it cancels the function's context, and after one more second
// it gives up the goroutine and returns an error.
func (s Serve) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dial server function: %w", err)
	}
	r, w := io.Pipe()
	c := &serveConn{in: buffer.NewQueue(buffer.SendLimit), out: r, lines: bufio.NewReader(r), done: make(chan struct{})}
	run, cancel := context.WithCancel(caller.Values(ctx))
	c.cancel = cancel
	go c.run(run, s, w) // ends when the function returns
	return c, nil
}

// serveConn is one session of a Serve.
type serveConn struct {
	in     *buffer.Queue
	out    *io.PipeReader
	lines  *bufio.Reader // of out; used by Recv
	cancel context.CancelFunc
	done   chan struct{} // closed when the function has returned
	exit   error         // why; set before done is closed

	closing  sync.Once
	closeErr error
}

func (c *serveConn) run(ctx context.Context, fn Serve, out *io.PipeWriter) {
	err := errors.New("server function ended its goroutine instead of returning") // runtime.Goexit
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("server function panicked: %v", p)
		}
		c.in.Abort(err) // first: Send fails for those who have seen the end
		c.exit = err
		close(c.done)
		_ = out.Close() // never fails
		c.cancel()
	}()
	err = fn(ctx, &serveReader{q: c.in}, out)
	if err == nil {
		err = io.EOF
	}
}

// Send queues msg for the function's reader.
func (c *serveConn) Send(msg []byte) error { return c.in.Offer(msg) }

// Recv returns the next line that the function has written.
func (c *serveConn) Recv() ([]byte, error) {
	for {
		line, err := wire.ReadLine(c.lines, buffer.MaxMessageBytes)
		switch {
		case errors.Is(err, io.ErrClosedPipe):
			return nil, jsonrpc.ErrClosed
		case errors.Is(err, jsonrpc.ErrTooLong):
			return nil, err
		case err != nil && json.Valid(line): // a last message without a newline
			return line, nil
		case err != nil && !c.returned():
			return nil, errors.New("server function closed its output and did not return")
		case err != nil:
			return nil, c.exit
		case len(line) > 0:
			return line, nil
		}
	}
}

// Close ends the session; see [Serve.Dial].
func (c *serveConn) Close() error {
	c.closing.Do(func() {
		c.in.End(jsonrpc.ErrClosed)
		_ = c.out.Close() // never fails
		defer c.in.Abort(jsonrpc.ErrClosed)
		if c.returned() {
			return
		}
		if c.cancel(); !c.returned() {
			c.closeErr = fmt.Errorf("close: server function did not return within %s of the end of its context",
				serveCloseTimeout)
		}
	})
	return c.closeErr
}

// returned waits until the function has returned, and reports false after a second.
func (c *serveConn) returned() bool {
	select {
	case <-c.done:
		return true
	case <-time.After(serveCloseTimeout):
		return false
	}
}

// serveReader is what the function reads: the queued messages, one in each line.
type serveReader struct {
	q    *buffer.Queue
	mu   sync.Mutex // serialises Read; guards rest
	rest []byte     // of the current line
}

// Read waits for a message and reads from it. It returns io.EOF after the end of the
// session.
func (r *serveReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rest) == 0 {
		msg, err := r.q.Recv()
		if err != nil {
			return 0, io.EOF
		}
		r.rest = slices.Concat(msg, []byte("\n"))
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close says that the function reads no more: Send fails from then on.
func (r *serveReader) Close() error {
	r.q.Abort(errors.New("server function closed its input"))
	return nil
}
