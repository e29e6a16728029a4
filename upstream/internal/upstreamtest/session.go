package upstreamtest

import (
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Patience bounds each wait for something that must happen, over real sockets.
const Patience = time.Minute

// Dial opens a session that is closed with the test.
func Dial(t testing.TB, up jsonrpc.Dialer) jsonrpc.Conn {
	t.Helper()
	conn, err := up.Dial(t.Context())
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Send sends msg on conn.
func Send(t testing.TB, conn jsonrpc.Conn, msg string) {
	t.Helper()
	if err := conn.Send([]byte(msg)); err != nil {
		t.Fatalf("Send(%.80s): %v", msg, err)
	}
}

// Recv returns the next message of conn.
func Recv(t testing.TB, conn jsonrpc.Conn) string {
	t.Helper()
	msg, err := conn.Recv()
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	return string(msg)
}

// Ping is a request.
const Ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
