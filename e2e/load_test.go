//go:build all

package e2e

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestThousandConnectionsOpenedAndDroppedLeaveNothing(t *testing.T) {
	t.Parallel()
	g := startGateway(t)
	openStream(t, g.url).close() // what the first connection starts for good is not a leak
	g.settled("mcp_sse_connections", 0)
	before, ok := g.metric("go_goroutines")
	if !ok {
		t.Fatal("no metric go_goroutines")
	}
	u, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 100)
	for i := range 1000 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			openAndDrop(t, u.Host, i)
		})
	}
	wg.Wait()
	g.settled("mcp_sse_connections", 0)
	g.settled("go_goroutines", before+10)
	if opened, _ := g.metric("mcp_sse_connections_opened_total"); opened < 300 {
		t.Errorf("connections opened = %v of 1001: the test no longer tests what it should", opened)
	}
}

// openAndDrop asks for a stream and goes at once: every third before the answer,
// every third with a reset.
func openAndDrop(t *testing.T, host string, i int) {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Errorf("dial: %v", err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /sse HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", host)
	if i%3 == 0 {
		return
	}
	if _, err := conn.Read(make([]byte, 512)); err != nil {
		t.Errorf("read: %v", err)
	}
	if i%3 == 1 {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
}

func TestClientThatNeverReadsHarmsNobody(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "--write-timeout", "1s", "--outbox-bytes", "65536")
	healthy := openStream(t, g.url)
	deaf, endpoint := openDeaf(t, g.url)
	defer deaf.Close()
	payload := strings.Repeat("x", 100_000)
	for i := 0; ; i++ {
		id := fmt.Sprint(i)
		status, _, err := healthy.tryPost(endpoint, strings.NewReader(
			requestJSON(id, "tools/call", callParams("echo", `{"message":"`+payload+`"}`))), "application/json")
		if err != nil {
			t.Fatalf("POST for the client that does not read: %v", err)
		}
		if got := healthy.call(id, "echo", `{"message":"m`+id+`"}`); got != "m"+id {
			t.Fatalf("echo = %q, want m%s", got, id)
		}
		if status == 404 {
			break // it was closed
		}
		if i > 2000 {
			t.Fatal("the client that does not read is still open after 200 MB")
		}
	}
	g.settled("mcp_sse_connections", 1)
}

// openDeaf opens a stream, reads the endpoint and then nothing more.
func openDeaf(t *testing.T, target string) (net.Conn, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /sse HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", u.Host)
	var head strings.Builder
	for !strings.Contains(head.String(), "/message\n") {
		b := make([]byte, 1)
		if _, err := conn.Read(b); err != nil {
			t.Fatalf("read endpoint: %v after %q", err, head.String())
		}
		head.Write(b)
	}
	_, path, _ := strings.Cut(head.String(), "data: ")
	return conn, resolve(t, target, strings.TrimSpace(path))
}
