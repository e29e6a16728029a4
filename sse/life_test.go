package sse_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/sse"
)

func overBoth(t *testing.T, test func(t *testing.T, protocol string)) {
	for _, protocol := range []string{"h1", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, protocol) })
		})
	}
}

// On HTTP/2 a write deadline ends the stream when it passes, write or no write;
// the server's own timeouts are for requests that end.
func TestIdleStreamOutlivesEveryTimeout(t *testing.T) {
	overBoth(t, func(t *testing.T, protocol string) {
		f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{WriteTimeout: 2 * time.Second, HeartbeatInterval: -1}}})
		p := pipetest.Serve(f, protocols(protocol), func(s *http.Server) {
			s.ReadTimeout, s.WriteTimeout, s.ReadHeaderTimeout = time.Second, time.Second, time.Second
		})
		defer p.Stop()
		r := openStream(t, p.Client, "http://gateway/sse", f)
		defer r.Body.Close()
		r.next()
		r.next()
		for i := range 10 {
			time.Sleep(time.Duration(i) * time.Second) // synctest's: it takes no time
			if err := r.c.Send("", fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
				t.Fatalf("after %d s: %v, closed for %s", i, err, r.c.Reason())
			}
			if e := r.next(); e.Data != fmt.Sprintf(`{"n":%d}`, i) {
				t.Fatalf("got %+v", e)
			}
		}
		r.c.Close(connstate.ClosedShutdown)
	})
}

// A client that reads nothing more is closed by the write deadline: reason
// write_timeout, and all that waited is let go.
func TestStalledClientIsClosedByTheWriteDeadline(t *testing.T) {
	overBoth(t, func(t *testing.T, protocol string) {
		f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{WriteTimeout: 2 * time.Second}}})
		p := pipetest.Serve(f, protocols(protocol), nil)
		defer p.Stop()
		r := openStream(t, p.Client, "http://gateway/sse", f)
		defer r.Body.Close()
		before := time.Now()
		data := []byte(`"` + strings.Repeat("x", 256<<10) + `"`)
		for range 3 { // HTTP/2 grants a client of Go 4 MiB before it reads
			for range 20 {
				go func() { _ = r.c.Send("", data) }()
			}
			synctest.Wait()
		}
		ssetest.Want(t, "reason", <-f.backend.closed, connstate.ClosedWriteTimeout)
		if took := time.Since(before); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		ssetest.Want(t, "connections in the registry", f.registry.Len(), 0)
	})
}

// A graceful close delivers everything that was sent before it, and ends the
// body in order, so that no client and no proxy reports a broken stream.
func TestGracefulCloseDeliversEverything(t *testing.T) {
	overBoth(t, func(t *testing.T, protocol string) {
		for _, n := range []int{0, 1, 50, 500} {
			f := newFixture(t, config{})
			p := pipetest.Serve(f, protocols(protocol), nil)
			r := openStream(t, p.Client, "http://gateway/sse", f)
			for i := range n {
				ssetest.Must(t, r.c.Push(connstate.Event{Name: "message", Data: fmt.Appendf(nil, `{"n":%d}`, i)}))
			}
			go r.c.CloseGracefully(connstate.ClosedShutdown, 10*time.Second)
			events, err := r.rest()
			if err != nil {
				t.Errorf("%d events: the stream ended with %v, want its regular end", n, err)
			}
			ssetest.Want(t, "events", len(events), n+2)
			ssetest.Want(t, "reason", <-f.backend.closed, connstate.ClosedShutdown)
			r.Body.Close()
			p.Stop()
		}
	})
}
