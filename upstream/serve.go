package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/peer"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

// serveCloseTimeout bounds each of the two waits of Close for the function: after the
// end of its input, and after the end of its context.
const serveCloseTimeout = time.Second

// Serve serves in process over newline-delimited JSON: the function runs one session.
// It reads the client's messages from in, which ends when the session is closed, and
// writes the server's messages to out. A Write blocks while 8 MiB of messages wait for
// Recv, and fails after Close. Recv returns jsonrpc.ErrTooLong in place of a line over
// 16 MiB. The function must return when in ends or ctx is cancelled. When it returns,
// or panics, the session is over.
type Serve func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error

// Dial starts the function in the only goroutine of the session. The function's context
// has the values of ctx that peer.Values returns. Dial fails only when ctx has ended.
//
// After the function has returned, Recv returns its error, or io.EOF for nil. Close
// ends in. A second later it cancels the function's context, and after one more second
// it gives up the goroutine and returns an error.
func (s Serve) Dial(ctx context.Context) (jsonrpc.Conn, error) { return s.dial(ctx, nil) }

// Observed returns s with sessions that count their waiting bytes against held.
func (s Serve) Observed(_ *slog.Logger, _ *metrics.Metrics, held *budget.Account) jsonrpc.Dialer {
	return dialFunc(func(ctx context.Context) (jsonrpc.Conn, error) { return s.dial(ctx, held) })
}

// dialFunc is a Dialer that is a function.
type dialFunc func(ctx context.Context) (jsonrpc.Conn, error)

// Dial calls the function.
func (d dialFunc) Dial(ctx context.Context) (jsonrpc.Conn, error) { return d(ctx) }

func (s Serve) dial(ctx context.Context, held *budget.Account) (jsonrpc.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dial server function: %w", err)
	}
	c := &serveConn{
		in:    buffer.NewQueue(buffer.SendLimit, held),
		out:   buffer.NewQueue(buffer.SendLimit, held),
		done:  make(chan struct{}),
		split: buffer.NewSplitter(buffer.MaxMessageBytes, held),
	}
	run, cancel := context.WithCancel(peer.Values(ctx))
	c.cancel = cancel
	go c.run(run, s) // ends when the function returns
	return c, nil
}

// serveConn is one session of a Serve.
type serveConn struct {
	in, out *buffer.Queue // out holds an error in place of a line over the limit
	done    chan struct{} // closed when the function has returned
	cancel  context.CancelFunc

	closed   atomic.Bool
	closing  sync.Once
	closeErr error

	writeMu sync.Mutex // serialises Write; guards split
	split   *buffer.Splitter
}

func (c *serveConn) run(ctx context.Context, fn Serve) {
	err := errors.New("server function ended its goroutine instead of returning") // runtime.Goexit
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("server function panicked: %v", p)
		}
		c.flush()
		c.in.Abort(err) // first: Send fails for those who have seen the end
		c.out.End(err)
		c.cancel()
		close(c.done)
	}()
	if err = fn(ctx, &serveReader{q: c.in}, &serveWriter{c: c}); err == nil {
		err = io.EOF
	}
}

// flush delivers a last message without a newline.
func (c *serveConn) flush() {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	line, _ := c.split.Last() // after a line over the limit the session ends anyway
	if line = bytes.TrimSpace(line); json.Valid(line) {
		_ = c.out.Offer(line) // fails when nobody reads
	}
}

// Send queues msg for the function's reader.
func (c *serveConn) Send(msg []byte) error {
	if c.closed.Load() {
		return jsonrpc.ErrClosed
	}
	return c.in.Offer(msg)
}

// Recv returns the next line that the function has written.
func (c *serveConn) Recv() ([]byte, error) { return c.out.Pop() }

// Close ends the session; see [Serve.Dial].
func (c *serveConn) Close() error {
	c.closing.Do(func() {
		c.closed.Store(true)
		c.in.End(jsonrpc.ErrClosed)
		c.out.Abort(jsonrpc.ErrClosed)
		c.closeErr = c.stop()
		c.in.Abort(jsonrpc.ErrClosed)
		c.writeMu.Lock()
		defer c.writeMu.Unlock()
		c.split.Release()
	})
	return c.closeErr
}

func (c *serveConn) stop() error {
	if c.returned() {
		return nil
	}
	c.cancel()
	if c.returned() {
		return nil
	}
	return fmt.Errorf("close: server function did not return within %s of the end of its context", serveCloseTimeout)
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
	mu   sync.Mutex // serialises Read; guards rest and tail
	rest []byte     // of the current message
	tail bool       // the newline of the current message is not read yet
}

// Read waits for a message and reads from it. It returns io.EOF after the end of the
// session.
func (r *serveReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.tail {
		msg, err := r.q.Pop()
		if err != nil {
			return 0, io.EOF
		}
		r.rest, r.tail = msg, true
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	if n < len(p) {
		p[n] = '\n'
		n++
		r.rest, r.tail = nil, false
	}
	return n, nil
}

// Close says that the function reads no more: Send fails from then on.
func (r *serveReader) Close() error {
	r.q.Abort(errors.New("server function closed its input"))
	return nil
}

// serveWriter is what the function writes to.
type serveWriter struct {
	c      *serveConn
	closed sync.Once
}

// Write cuts p into lines and waits until there is room for them.
func (w *serveWriter) Write(p []byte) (int, error) {
	w.c.writeMu.Lock()
	defer w.c.writeMu.Unlock()
	for rest := p; len(rest) > 0; {
		var (
			line []byte
			err  error
		)
		at := len(p) - len(rest)
		line, rest, err = w.c.split.Next(rest)
		line = bytes.TrimSpace(line)
		switch {
		case err != nil:
			err = w.c.out.PushError(err)
		case len(line) > 0:
			err = w.c.out.Push(line)
		}
		w.c.split.Done()
		if err != nil {
			return at, io.ErrClosedPipe
		}
	}
	return len(p), nil
}

// Close says that the function writes no more. The session ends when the function
// returns, or after a second.
func (w *serveWriter) Close() error {
	w.closed.Do(func() { go w.expire() })
	return nil
}

func (w *serveWriter) expire() {
	if !w.c.returned() {
		w.c.out.End(errors.New("server function closed its output and did not return"))
	}
}
