package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/stdio"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// backend answers each request with its params, after the delay that its method names.
type backend struct {
	mu       sync.Mutex
	c        connstate.ForHandler
	received []string
}

func (b *backend) Accept(c *connstate.Connection) connstate.Handler {
	b.c = connstate.ForHandler{Connection: c}
	return b
}

func (b *backend) Receive(m *jsonrpc.Message) {
	b.mu.Lock()
	b.received = append(b.received, m.Kind.String()+" "+m.Method)
	b.mu.Unlock()
	if m.Kind != jsonrpc.Request {
		return
	}
	r, err := b.c.BeginRequest(m)
	if err != nil {
		return
	}
	result := m.Params()
	if result == nil {
		result = []byte("{}")
	}
	answer := func() { r.Answer(jsonrpc.NewResult(m.ID, result), "") }
	if d, err := time.ParseDuration(m.Method); err == nil {
		time.AfterFunc(d, answer)
		return
	}
	answer()
}
func (b *backend) Refused(*connstate.Request, error) {}
func (b *backend) Drained()                          {}
func (b *backend) Closed()                           {}
func (b *backend) OnMemory() bool                    { return false }

func newRegistry() *connstate.Registry {
	return connstate.NewRegistry(connstate.Limits{}, connstate.Options{})
}

// serve gives Serve the whole input, and returns what it writes.
func serve(t *testing.T, input string, o stdio.Options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	r := newRegistry()
	err := stdio.Serve(t.Context(), &backend{}, r, strings.NewReader(input), &out, o)
	if open := len(r.All()); open != 0 {
		t.Errorf("%d connections are left", open)
	}
	return out.String(), err
}

func TestServe(t *testing.T) {
	const limit = 100
	for _, test := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"request", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1}}` + "\n", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}` + "\n"},
		{"last line without its end", `{"jsonrpc":"2.0","id":"a","method":"x","params":{}}`, `{"jsonrpc":"2.0","id":"a","result":{}}` + "\n"},
		{"CRLF, blank lines", "\r\n" + `{"jsonrpc":"2.0","id":1,"method":"x","params":{}}` + "\r\n\n", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		{"notification", `{"jsonrpc":"2.0","method":"x"}` + "\n", ""},
		{"an answer that takes longer than the client writes", `{"jsonrpc":"2.0","id":1,"method":"9s","params":{}}` + "\n", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		{"no JSON", "hello\n", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid JSON: unexpected character 'h' at byte 0"}}` + "\n"},
		{"no message", `{"jsonrpc":"2.0","id":7}` + "\n", `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"a message has either \"method\", \"result\" or \"error\""}}` + "\n"},
		{"too long, then a request", `"` + strings.Repeat("x", 200_000) + "\"\n" + `{"jsonrpc":"2.0","id":1,"method":"x","params":{}}` + "\n",
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is over 100 bytes"}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		{"too long at the end", strings.Repeat("x", 101), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is over 100 bytes"}}` + "\n"},
		{"as long as it may be", `{"jsonrpc":"2.0","id":1,"method":"x","params":["` + strings.Repeat("x", limit-51) + `"]}` + "\n",
			`{"jsonrpc":"2.0","id":1,"result":["` + strings.Repeat("x", limit-51) + `"]}` + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := serve(t, test.in, stdio.Options{MaxMessageBytes: limit})
				if err != nil || got != test.want {
					t.Errorf("got %q, %v\nwant %q", got, err, test.want)
				}
			})
		})
	}
}

func TestAnswersTakeNoLongerThanTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		got, err := serve(t, `{"jsonrpc":"2.0","id":1,"method":"1h"}`+"\n", stdio.Options{Grace: 3 * time.Second})
		want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the gateway ends, and the server has not answered","data":{"reason":"draining","retryable":false}}}` + "\n"
		if took := time.Since(began); took != 3*time.Second || got != want || err != nil {
			t.Errorf("got %q, %v after %s, want %q after 3 s", got, err, took, want)
		}
		time.Sleep(time.Hour) // the fake answer
	})
}

// pipes connects a client to a Serve that runs until the test ends.
func pipes(t *testing.T, ctx context.Context, b stdio.Backend, r *connstate.Registry) (in *io.PipeWriter, out *io.PipeReader, served <-chan error) {
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- stdio.Serve(ctx, b, r, inRead, outWrite, stdio.Options{}) }()
	t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	return in, out, done
}

func TestMessagesPassWhileTheClientLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		in, out, served := pipes(t, t.Context(), b, newRegistry())
		lines := bufio.NewReader(out)
		for range 100 {
			if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"x","params":{}}`+"\n"); err != nil {
				t.Fatal(err)
			}
			if got, err := lines.ReadString('\n'); err != nil || got != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		b.c.SendNow("", []byte(`{"jsonrpc":"2.0","method":"notifications/x"}`))
		if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, "notifications/x") {
			t.Errorf("got %q, %v, want the server's notification", got, err)
		}
		in.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func TestServeEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		end  func(b *backend, in *io.PipeWriter, out *io.PipeReader, cancel context.CancelCauseFunc)
		want string // "": nil
	}{
		{"the context ends", func(_ *backend, _ *io.PipeWriter, _ *io.PipeReader, cancel context.CancelCauseFunc) { cancel(broken) }, "broken"},
		{"a read fails", func(_ *backend, in *io.PipeWriter, _ *io.PipeReader, _ context.CancelCauseFunc) {
			in.CloseWithError(broken)
		}, "read: broken"},
		{"the client reads no more", func(b *backend, _ *io.PipeWriter, out *io.PipeReader, _ context.CancelCauseFunc) {
			out.CloseWithError(broken)
			b.c.SendNow("", []byte(`{}`))
		}, "write: broken"},
		{"the owner closes the connection", func(b *backend, _ *io.PipeWriter, _ *io.PipeReader, _ context.CancelCauseFunc) {
			b.c.Close(connstate.ClosedShutdown)
		}, ""},
		{"the client is too slow", func(b *backend, _ *io.PipeWriter, _ *io.PipeReader, _ context.CancelCauseFunc) {
			for b.c.Send("", bytes.Repeat([]byte("x"), 300<<10)) == nil {
			}
		}, "connection closed: slow"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				b := &backend{}
				in, out, served := pipes(t, ctx, b, newRegistry())
				synctest.Wait()
				test.end(b, in, out, cancel)
				err := <-served
				if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				in.Close()
				out.Close()
			})
		})
	}
}

// broken is an output that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

// A client that reads no more is not waited for.
func TestABrokenOutputEndsTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		in := `{"jsonrpc":"2.0","id":1,"method":"1s"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"1h"}`
		err := stdio.Serve(t.Context(), &backend{}, newRegistry(), strings.NewReader(in), broken{}, stdio.Options{})
		if took := time.Since(began); took != time.Second || err == nil || !strings.Contains(err.Error(), "nobody reads") {
			t.Errorf("got %v after %s, want the error of the write after 1 s", err, took)
		}
		time.Sleep(time.Hour) // the other fake answer
	})
}

func TestServeRefusedByTheRegistry(t *testing.T) {
	r := newRegistry()
	r.Drain()
	if err := stdio.Serve(t.Context(), &backend{}, r, strings.NewReader(""), io.Discard, stdio.Options{}); err == nil {
		t.Error("got nil, want the refusal")
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n\r\n{}\n[]\nnull"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := stdio.Serve(t.Context(), &backend{}, newRegistry(), bytes.NewReader(in), &out, stdio.Options{MaxMessageBytes: 64}); err != nil {
			t.Error(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if m, err := jsonrpc.Parse(line); err != nil || m.Kind != jsonrpc.Response {
				t.Errorf("wrote %q: %v", line, err)
			}
		}
	})
}
