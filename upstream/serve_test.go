package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestServeOutputLines(t *testing.T) {
	for name, tt := range map[string]struct {
		out  string
		want []string
		end  error
	}{
		"one write many lines":      {"{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}, io.EOF},
		"CRLF and blanks":           {"{\"a\":1}\r\n\r\n   \n {\"b\":2} \n", []string{`{"a":1}`, `{"b":2}`}, io.EOF},
		"last line without newline": {"{}\n{\"a\":1}", []string{`{}`, `{"a":1}`}, io.EOF},
		"half a line at the end":    {"{}\n{\"a\":", []string{`{}`}, io.EOF},
		"too long":                  {"{}\n" + strings.Repeat("x", buffer.MaxMessageBytes+1), []string{`{}`}, jsonrpc.ErrTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, _ io.ReadCloser, out io.WriteCloser) error {
				_, err := io.WriteString(out, tt.out)
				return err
			}))
			for _, want := range tt.want {
				ssetest.Want(t, "line", upstreamtest.Recv(t, conn), want)
			}
			ssetest.WantError(t, "at the end", upstreamtest.RecvError(conn), tt.end)
		})
	}
}

func TestServeEnds(t *testing.T) {
	for want, end := range map[string]func() error{
		"EOF":                            func() error { return nil },
		"broken":                         func() error { return errors.New("broken") },
		"server function panicked: boom": func() error { panic("boom") },
		"ended its goroutine":            func() error { runtime.Goexit(); return nil },
	} {
		upstreamtest.TestInBubble(t, want, func(t *testing.T) {
			conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, in io.ReadCloser, out io.WriteCloser) error {
				fmt.Fprintln(out, upstreamtest.Ping)
				in.Close()
				return end()
			}))
			synctest.Wait()
			ssetest.Want(t, "what was written before the end", upstreamtest.Recv(t, conn), upstreamtest.Ping)
			ssetest.WantText(t, "Recv", upstreamtest.RecvError(conn), want)
			ssetest.WantText(t, "Send", conn.Send([]byte(upstreamtest.Ping)), want)
		})
	}
}

// Send never waits, and keeps 8 MiB, which Close delivers.
func TestServeSendIsBoundedAndCloseDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, read := make(chan struct{}), 0
		conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, in io.ReadCloser, _ io.WriteCloser) error {
			<-begin
			n, err := io.Copy(io.Discard, in)
			read = int(n)
			return err
		}))
		msg := []byte(`{"pad":"` + strings.Repeat("x", 1<<20) + `"}`)
		sent := 0
		var err error
		for ; err == nil; err = conn.Send(msg) {
			sent++
		}
		if sent--; !errors.Is(err, jsonrpc.ErrBusy) || sent < 7 || sent > 8 {
			t.Errorf("after %d MiB: got %v, want ErrBusy after 8", sent, err)
		}
		close(begin)
		ssetest.Want(t, "Close", conn.Close(), nil)
		ssetest.Want(t, "bytes that the server read", read, sent*(len(msg)+1))
	})
}

func TestServeWriteWaitsForRecvAndEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written, failed := 0, make(chan error, 1)
		conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, _ io.ReadCloser, out io.WriteCloser) error {
			for ; ; written++ {
				if _, err := io.WriteString(out, strings.Repeat("x", 1<<20)+"\n"); err != nil {
					failed <- err
					return nil
				}
			}
		}))
		upstreamtest.Recv(t, conn)
		synctest.Wait()
		if written > 2 {
			t.Errorf("%d MiB were written, 1 was received", written)
		}
		ssetest.Want(t, "Close", conn.Close(), nil)
		ssetest.WantError(t, "Write", <-failed, io.ErrClosedPipe)
	})
}

func TestServeClose(t *testing.T) {
	for name, tt := range map[string]struct {
		obey func(ctx context.Context, in io.Reader, release <-chan struct{})
		took time.Duration
		err  string
	}{
		"obeys the end of its input": {func(_ context.Context, in io.Reader, _ <-chan struct{}) { _, _ = io.Copy(io.Discard, in) }, 0, ""},
		"obeys its context":          {func(ctx context.Context, _ io.Reader, _ <-chan struct{}) { <-ctx.Done() }, time.Second, ""},
		"obeys nothing":              {func(_ context.Context, _ io.Reader, release <-chan struct{}) { <-release }, 2 * time.Second, "did not return"},
	} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			conn := upstreamtest.Dial(t, upstream.Serve(func(ctx context.Context, in io.ReadCloser, _ io.WriteCloser) error {
				tt.obey(ctx, in, release)
				return ctx.Err()
			}))
			unblocked := make(chan error, 1)
			go func() { unblocked <- upstreamtest.RecvError(conn) }()
			synctest.Wait()
			start := time.Now()
			err := conn.Close()
			if took := time.Since(start); took != tt.took || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Close took %s and gives %v, want %s and %q", took, err, tt.took, tt.err)
			}
			ssetest.Want(t, "second Close", conn.Close(), err)
			ssetest.WantError(t, "Recv", <-unblocked, jsonrpc.ErrClosed)
			ssetest.WantError(t, "Send", conn.Send([]byte(upstreamtest.Ping)), jsonrpc.ErrClosed)
		})
	}
}

func TestServeClosedOutputEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := upstreamtest.Dial(t, upstream.Serve(func(ctx context.Context, _ io.ReadCloser, out io.WriteCloser) error {
			out.Close()
			out.Close()
			<-ctx.Done()
			return nil
		}))
		ssetest.WantText(t, "Recv", upstreamtest.RecvError(conn), "closed its output")
	})
}
