package sse_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/sse"
)

// A client that announces a body and never sends it gets its answer, and loses its
// TCP connection, in bounded time, on every route and with every refusal.
func TestHalfRequestsAreBounded(t *testing.T) {
	const limit = 10 * time.Second
	authenticate := func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") != "" {
			return "", &sse.AuthError{Message: "wrong"}
		}
		return "", nil
	}
	for name, tc := range map[string]struct {
		request string
		status  int
		at      time.Duration // when the answer is there
	}{
		"GET with a body":    {"GET /sse HTTP/1.1", 400, 0},
		"no such route":      {"POST /nowhere HTTP/1.1", 404, 0},
		"GET of a non-route": {"GET /nowhere HTTP/1.1", 404, 0},
		"no such connection": {"POST /sse/x/message HTTP/1.1\r\nContent-Type: application/json", 404, 0},
		"another method":     {"DELETE /sse HTTP/1.1", 405, 0},
		"a refused token":    {"GET /sse HTTP/1.1\r\nAuthorization: Bearer x", 401, 0},
		"a foreign origin":   {"POST /sse/x/message HTTP/1.1\r\nOrigin: http://evil.example", 403, 0},
		"another media type": {"POST /sse/ID/message HTTP/1.1\r\nContent-Type: text/plain", 415, 0},
		"a message":          {"POST /sse/ID/message HTTP/1.1\r\nContent-Type: application/json", 400, limit},
		"health":             {"GET /healthz HTTP/1.1", 400, 0},
		"no length":          {"POST /sse/ID/message HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json", 400, limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, config{sse: sse.Options{Options: front.Options{Authenticate: authenticate}}})
				routes := http.NewServeMux()
				routes.Handle("/", f)
				routes.Handle("/healthz", f.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
				p := pipetest.Serve(routes, protocols("h1"), nil)
				defer p.Stop()
				r := openStream(t, p.Client, "http://localhost/sse", f)
				defer r.Body.Close()
				conn := p.Dial()
				defer conn.Close()
				sent := time.Now()
				length := "Content-Length: 9\r\n"
				if name == "no length" {
					length = ""
				}
				fmt.Fprintf(conn, "%s\r\nHost: localhost\r\n%s\r\n", replaceID(tc.request, r.c.ID()), length)
				in := bufio.NewReader(conn)
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != tc.status || time.Since(sent) != tc.at {
					t.Errorf("got %s after %v, %v; want %d after %v", res.Status, time.Since(sent), err, tc.status, tc.at)
				}
				if _, err := in.ReadByte(); err != io.EOF || time.Since(sent) > tc.at+2*time.Second {
					t.Errorf("the TCP connection ends after %v: %v", time.Since(sent), err)
				}
			})
		})
	}
}

func replaceID(request, id string) string { return strings.ReplaceAll(request, "ID", id) }

// A client that sends head and body apart reads the refusal all the same: a TCP
// connection that is closed while it sends is reset.
func TestRefusalReachesAClientThatStillSends(t *testing.T) {
	f := newFixture(t, config{})
	srv := start(t, f)
	for range 20 {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		const size = 100 << 10
		fmt.Fprintf(conn, "POST /sse/nobody/message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
		in := bufio.NewReader(conn)
		if _, err := in.Peek(1); err != nil { // the answer is there before the body is sent
			t.Fatal(err)
		}
		for range 10 {
			if _, err := conn.Write(make([]byte, size/10)); err != nil {
				t.Fatalf("send the body: %v", err)
			}
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusNotFound || len(body) == 0 {
			t.Fatalf("got %s, %q, %v", res.Status, body, err)
		}
		conn.Close()
	}
}
