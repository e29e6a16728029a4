package sse_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/sse"
)

// Each of many bodies that are read at a time has its own limit: those that come to
// their end in time get a 202, the others are refused when their time is up, and a
// connection whose limit has not passed serves on.
func TestEachBodyHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bodies = 9
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{ReadTimeout: 10 * time.Second}}})
		p := pipetest.Serve(f, protocols("h1"), nil)
		defer p.Stop()
		s := attach(t, f, p.Client, "http://gateway")
		defer s.Body.Close()
		began := time.Now()
		var conns [bodies]net.Conn
		for i := range conns {
			time.Sleep(time.Second) // synctest's: it takes no time
			conns[i] = p.Dial()
			defer conns[i].Close()
			fmt.Fprintf(conns[i], "POST /sse/%s/message HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n", s.c.ID())
		}
		const message = `{"jsonrpc":"2.0","method":"notify/one" }`
		for i, conn := range conns {
			if i%2 == 0 {
				fmt.Fprint(conn, message)
				if res, body := readAnswer(t, conn); res.StatusCode != http.StatusAccepted {
					t.Errorf("body %d: got %d %s", i, res.StatusCode, body)
				}
			}
		}
		for i, conn := range conns {
			if i%2 == 1 {
				res, body := readAnswer(t, conn)
				if due := time.Duration(i+1+10) * time.Second; res.StatusCode != http.StatusBadRequest || !isRefusal(body) || time.Since(began) != due {
					t.Errorf("body %d: got %d %s after %v, want 400 after %v", i, res.StatusCode, body, time.Since(began), due)
				}
			}
		}
		fmt.Fprintf(conns[0], "POST /sse/%s/message HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n%s", s.c.ID(), message)
		if res, body := readAnswer(t, conns[0]); res.StatusCode != http.StatusAccepted {
			t.Errorf("a later body: got %d %s", res.StatusCode, body)
		}
	})
}
