package upstreamtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Patience bounds each wait for something that must happen, over real sockets.
const Patience = time.Minute

const (
	Initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	Initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	InitResult  = `{"jsonrpc":"2.0","id":1,"result":` +
		`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
	Call2   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`
	Result2 = `{"jsonrpc":"2.0","id":2,"result":{"n":9007199254740993,"z":1.50,"x":{"b":1,"a":2}},"extra":[1]}`
	// Ping is a request.
	Ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	// Note is a notification with a number in it.
	Note = `{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d}}`
)

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

// Talk is a session under test.
type Talk struct {
	t    *testing.T
	Conn jsonrpc.Attributed
}

// DialTalk opens a session that is closed with the test.
func DialTalk(t *testing.T, up jsonrpc.Dialer) *Talk {
	t.Helper()
	return NewTalk(t, Dial(t, up))
}

// NewTalk returns conn as a session under test.
func NewTalk(t *testing.T, conn jsonrpc.Conn) *Talk { return &Talk{t, conn.(jsonrpc.Attributed)} }

// Open is DialTalk, followed by the handshake.
func Open(t *testing.T, up jsonrpc.Dialer) *Talk {
	t.Helper()
	k := DialTalk(t, up)
	k.Send(Initialize)
	if got, _ := k.Recv(); got != InitResult {
		t.Fatalf("initialize got %s", got)
	}
	k.Send(Initialized)
	return k
}

// Send sends msg.
func (k *Talk) Send(msg string) {
	k.t.Helper()
	Send(k.t, k.Conn, msg)
}

type arrival struct {
	Msg []byte
	id  jsonrpc.ID
	Err error
}

// Next returns the next message, or the end.
func (k *Talk) Next() arrival {
	k.t.Helper()
	got := make(chan arrival, 1)
	go func() { // ends with the session at the latest
		msg, id, err := k.Conn.RecvFor()
		got <- arrival{msg, id, err}
	}()
	select {
	case a := <-got:
		return a
	case <-time.After(Patience):
		k.t.Fatal("nothing came")
		return arrival{}
	}
}

// Recv returns the next message and the request that it came with.
func (k *Talk) Recv() (string, jsonrpc.ID) {
	k.t.Helper()
	a := k.Next()
	if a.Err != nil {
		k.t.Fatalf("Recv: %v", a.Err)
	}
	return string(a.Msg), a.id
}

// Ended returns the error with which the session ends.
func (k *Talk) Ended() error {
	k.t.Helper()
	a := k.Next()
	for a.Err == nil {
		a = k.Next()
	}
	return a.Err
}

// WantError checks that the next message is an error response of the gateway, with that id
// and these parts.
func (k *Talk) WantError(id string, parts ...string) {
	k.t.Helper()
	got, _ := k.Recv()
	if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,"error":`) {
		k.t.Fatalf("got %s, want an error for %s", got, id)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			k.t.Fatalf("got %s, want %q in it", got, part)
		}
	}
}

// Gets checks that the next message is want, and that it belongs to no request.
func (k *Talk) Gets(want string) {
	k.t.Helper()
	k.GetsOf("", want)
}

// GetsOf checks that the next message is want, and that it belongs to the request.
func (k *Talk) GetsOf(request jsonrpc.ID, want string) {
	k.t.Helper()
	if got, id := k.Recv(); got != want || id != request {
		k.t.Fatalf("got %s with request %q, want %s with %q", got, id, want, request)
	}
}

// RecvError returns the error of Recv.
func RecvError(c jsonrpc.Conn) error {
	_, err := c.Recv()
	return err
}

// Ping sends a ping and checks its answer.
func (k *Talk) Ping(id int) {
	k.t.Helper()
	k.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
	if got, _ := k.Recv(); !strings.Contains(got, fmt.Sprintf(`"id":%d,"result"`, id)) {
		k.t.Fatalf("ping got %s", got)
	}
}
