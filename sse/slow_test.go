package sse_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/sse"
)

// A client that reads steadily gets a message that takes longer than the write
// timeout, and what waits behind it: the timeout is for progress, not for a message.
// A sender that waits has a bound all the same.
func TestSteadyReaderGetsALargeMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		rate   int // bytes a second
		behind int // bytes of a message that waits behind it
		closed bool
	}{
		"slow, one message":  {rate: 64 << 10},
		"two messages":       {rate: 1 << 20, behind: 1 << 20},
		"slow, two messages": {rate: 64 << 10, behind: 1 << 20, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, protocol string) { steadyReader(t, protocol, tc.rate, tc.behind, tc.closed) })
		})
	}
}

func steadyReader(t *testing.T, version string, rate, behind int, closed bool) {
	const size = 12 << 20
	conn := connstate.Options{OutboxBytes: 1 << 20, OutboxWait: 10 * time.Second}
	f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{WriteTimeout: 10 * time.Second}}, conn: conn})
	p := pipetest.Serve(f, protocols(version), nil)
	defer p.Stop()
	r := openStream(t, p.Client, "http://localhost/sse", f)
	defer r.Body.Close()
	r.next() // endpoint
	r.next() // connection
	sent := make(chan error, 1)
	go func() {
		err := r.c.Send("", []byte(`"`+strings.Repeat("x", size)+`"`))
		if err == nil && behind > 0 {
			err = r.c.Send("", []byte(`"`+strings.Repeat("y", behind)+`"`))
		}
		sent <- err
	}()
	var err error
	got := 0
	for buf := make([]byte, rate); err == nil && got < size+behind; time.Sleep(time.Second) {
		n := 0
		n, err = io.ReadFull(r.br, buf)
		got += n
	}
	if failed := <-sent; (failed != nil) != closed || (err != nil) != closed {
		t.Errorf("sent: %v, read %d bytes: %v, reason %q; want the stream closed: %t", failed, got, err, r.c.Reason(), closed)
	}
}
