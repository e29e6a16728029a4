//go:build unix

package stdio

import (
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A child that has not read in time sees the end of its stdin, and can still end in order.
func TestStdinEndsWhenTheTimeIsUp(t *testing.T) {
	r, w, err := os.Pipe()
	ssetest.Must(t, err)
	s := stdin{broken: func(error) {}}
	s.open(w)
	ssetest.Must(t, s.send(make([]byte, 1<<20))) // more than the pipe has room for
	ssetest.Must(t, w.SetWriteDeadline(time.Unix(1, 0)))
	s.end(jsonrpc.ErrClosed)
	if got, err := io.ReadAll(r); err != nil || len(got) == 0 {
		t.Errorf("the child read %d bytes, %v", len(got), err)
	}
	s.writer.Wait()
}

// Nobody waits for a child that does not read, even if its pipe has no poller.
func TestStdinWithoutPollerDoesNotBlock(t *testing.T) {
	var p [2]int
	ssetest.Must(t, syscall.Pipe(p[:]))
	syscall.CloseOnExec(p[0])
	r, w := os.NewFile(uintptr(p[0]), "r"), os.NewFile(uintptr(p[1]), "w")
	s := stdin{broken: func(error) {}}
	s.open(w)
	for range 100 {
		ssetest.Must(t, s.send(make([]byte, 2000)))
	}
	s.end(jsonrpc.ErrClosed)
	_, err := io.ReadFull(r, make([]byte, 100_000))
	ssetest.Must(t, err)
	ssetest.Must(t, r.Close())
	s.writer.Wait()
}
