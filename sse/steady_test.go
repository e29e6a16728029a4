package sse_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/sse"
)

// A client that reads steadily but slowly gets a message that takes longer than
// the write timeout, and so does what waits behind it: the timeout is for
// progress, not for a message.
func TestSteadyReaderGetsALargeMessage(t *testing.T) {
	for _, name := range []string{"h1", "h2c"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, config{
					sse:  sse.Options{WriteTimeout: 10 * time.Second},
					conn: connstate.Options{OutboxBytes: 1 << 20, OutboxWait: 10 * time.Second},
				})
				p := servePipe(f, protocols(name), nil)
				defer p.stop()
				r := openStream(t, p.client, "http://localhost/sse", f)
				defer r.Body.Close()
				r.next() // endpoint
				r.next() // connection
				size := 12 << 20
				sent := make(chan error, 2)
				go func() {
					sent <- r.c.Send([]byte(`"` + strings.Repeat("x", size) + `"`))
					sent <- r.c.Send([]byte(`"` + strings.Repeat("y", 1<<20) + `"`))
				}()
				got := 0
				for buf := make([]byte, 64<<10); got < size+1<<20; { // 64 KiB a second: over 3 minutes
					n, err := io.ReadFull(r.br, buf)
					if got += n; err != nil {
						t.Fatalf("the stream ended after %d bytes: %v, reason %q", got, err, r.c.Reason())
					}
					time.Sleep(time.Second)
				}
				for range 2 {
					if err := <-sent; err != nil {
						t.Error(fmt.Errorf("send: %w", err))
					}
				}
			})
		})
	}
}
