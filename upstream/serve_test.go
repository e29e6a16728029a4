package upstream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

func TestServeWritesALineThatIsTooLong(t *testing.T) {
	conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, _ io.ReadCloser, out io.WriteCloser) error {
		_, err := io.WriteString(out, strings.Repeat("x", upstream.DefaultMaxLineBytes+1))
		return err
	}))
	if _, err := conn.Recv(); !errors.Is(err, jsonrpc.ErrTooLong) {
		t.Errorf("got %v", err)
	}
}

func TestServeOutputLines(t *testing.T) {
	tests := []struct {
		name, out string
		want      []string
	}{
		{"one write many lines", "{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}},
		{"CRLF and blanks", "{\"a\":1}\r\n\r\n   \n {\"b\":2} \n", []string{`{"a":1}`, `{"b":2}`}},
		{"last line without newline", "{}\n{\"a\":1}", []string{`{}`, `{"a":1}`}},
		{"half a line at the end", "{}\n{\"a\":", []string{`{}`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, _ io.ReadCloser, out io.WriteCloser) error {
				n, err := io.WriteString(out, test.out)
				if err == nil && n != len(test.out) {
					return io.ErrShortWrite
				}
				return err
			}))
			for _, want := range test.want {
				got, err := conn.Recv()
				if err != nil || string(got) != want {
					t.Errorf("got %.80s, %v, want %s", got, err, want)
				}
			}
			if _, err := conn.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: got %v, want io.EOF", err)
			}
			if err := conn.Send([]byte(upstreamtest.Ping)); !errors.Is(err, io.EOF) {
				t.Errorf("Send after the end: got %v, want io.EOF", err)
			}
		})
	}
}

func TestServeEnds(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name string
		end  func() error
		want string
	}{
		{"nil", func() error { return nil }, "EOF"},
		{"error", func() error { return broken }, "broken"},
		{"panic", func() error { panic("boom") }, "server function panicked: boom"},
		{"goexit", func() error { runtime.Goexit(); return nil }, "ended its goroutine"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, in io.ReadCloser, out io.WriteCloser) error {
					fmt.Fprintln(out, upstreamtest.Ping)
					in.Close()
					return test.end()
				}))
				synctest.Wait()
				if got := upstreamtest.Recv(t, conn); got != upstreamtest.Ping {
					t.Errorf("got %s, want what was written before the end", got)
				}
				if _, err := conn.Recv(); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Recv: got %v, want %s", err, test.want)
				}
				if err := conn.Send([]byte(upstreamtest.Ping)); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Send: got %v, want %s", err, test.want)
				}
			})
		})
	}
}

func TestServeSendNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := upstreamtest.Dial(t, upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
			<-ctx.Done() // never reads
			return nil
		}))
		msg := []byte(`{"pad":"` + strings.Repeat("x", 1<<20) + `"}`)
		sent := 0
		var err error
		for ; err == nil; err = conn.Send(msg) {
			sent++
		}
		if !errors.Is(err, jsonrpc.ErrBusy) || sent < 7 || sent > 9 {
			t.Errorf("after %d MiB: got %v, want ErrBusy after 8", sent, err)
		}
	})
}

func TestServeWriteWaitsForRecv(t *testing.T) {
	const lines = 20
	msg := `{"pad":"` + strings.Repeat("x", 1<<20) + `"}`
	synctest.Test(t, func(t *testing.T) {
		written := 0
		conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, in io.ReadCloser, out io.WriteCloser) error {
			for range lines {
				if _, err := io.WriteString(out, msg+"\n"); err != nil {
					return err
				}
				written++
			}
			return nil
		}))
		synctest.Wait()
		if written > 8 {
			t.Errorf("%d MiB written ahead of Recv, want at most 8", written)
		}
		for i := range lines {
			if got := upstreamtest.Recv(t, conn); got != msg {
				t.Fatalf("line %d: got %d bytes", i, len(got))
			}
		}
		if _, err := conn.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want io.EOF", err)
		}
	})
}

func TestServeCloseReleasesABlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, in io.ReadCloser, out io.WriteCloser) error {
			msg := strings.Repeat("x", 1<<20) + "\n"
			for {
				if _, err := io.WriteString(out, msg); err != nil {
					failed <- err
					return nil
				}
			}
		}))
		synctest.Wait()
		if err := conn.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-failed; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Write: got %v, want io.ErrClosedPipe", err)
		}
	})
}

func TestServeClose(t *testing.T) {
	type serve func(ctx context.Context, in io.Reader, release <-chan struct{})
	tests := []struct {
		name string
		obey serve
		took time.Duration
		err  string
	}{
		{"obeys the end of its input", func(_ context.Context, in io.Reader, _ <-chan struct{}) {
			_, _ = io.Copy(io.Discard, in)
		}, 0, ""},
		{"obeys its context", func(ctx context.Context, _ io.Reader, _ <-chan struct{}) {
			<-ctx.Done()
		}, time.Second, ""},
		{"obeys nothing", func(_ context.Context, _ io.Reader, release <-chan struct{}) {
			<-release
		}, 2 * time.Second, "did not return"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				conn := upstreamtest.Dial(t, upstream.Serve(func(ctx context.Context, in io.ReadCloser, _ io.WriteCloser) error {
					test.obey(ctx, in, release)
					return ctx.Err()
				}))
				unblocked := make(chan error, 1)
				go func() {
					_, err := conn.Recv()
					unblocked <- err
				}()
				synctest.Wait()
				start := time.Now()
				err := conn.Close()
				if took := time.Since(start); took != test.took {
					t.Errorf("Close took %s, want %s", took, test.took)
				}
				if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("Close: got %v, want %q", err, test.err)
				}
				if again := conn.Close(); again != err {
					t.Errorf("second Close: got %v, want %v", again, err)
				}
				if err := <-unblocked; !errors.Is(err, jsonrpc.ErrClosed) {
					t.Errorf("Recv: got %v, want ErrClosed", err)
				}
				if err := conn.Send([]byte(upstreamtest.Ping)); !errors.Is(err, jsonrpc.ErrClosed) {
					t.Errorf("Send: got %v, want ErrClosed", err)
				}
			})
		})
	}
}

func TestServeCloseDeliversWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		conn := upstreamtest.Dial(t, upstream.Serve(func(_ context.Context, in io.ReadCloser, _ io.WriteCloser) error {
			for lines := bufio.NewScanner(in); lines.Scan(); {
				got = append(got, lines.Text())
			}
			return nil
		}))
		for i := range 10 {
			upstreamtest.Send(t, conn, fmt.Sprintf(`{"n":%d}`, i))
		}
		if err := conn.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if len(got) != 10 {
			t.Errorf("server read %v, want all ten", got)
		}
	})
}

func TestServeClosedOutputEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := upstreamtest.Dial(t, upstream.Serve(func(ctx context.Context, _ io.ReadCloser, out io.WriteCloser) error {
			out.Close()
			out.Close()
			<-ctx.Done()
			return nil
		}))
		if _, err := conn.Recv(); err == nil || !strings.Contains(err.Error(), "closed its output") {
			t.Errorf("Recv: got %v", err)
		}
	})
}
