package multiplex_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// pushConn hands what the benchmark gives it straight to the session: what is
// measured is the multiplexer alone.
type pushConn struct {
	receive func([]byte, error) bool
	bytes   atomic.Int64 // requests and their cancellations are sent concurrently
}

func (c *pushConn) Push(receive func([]byte, error) bool) { c.receive = receive }
func (c *pushConn) Recv() ([]byte, error)                 { panic("Recv of a Pusher") }
func (c *pushConn) Close() error                          { return nil }
func (c *pushConn) Send(msg []byte) error                 { c.bytes.Add(int64(len(msg))); return nil }

// countingClient counts what reaches it.
type countingClient struct{ answers, bytes int }

func (c *countingClient) Answer(_ jsonrpc.ID, response []byte, _ string) {
	c.answers++
	c.bytes += len(response)
}
func (c *countingClient) Fail(jsonrpc.ID, *jsonrpc.Error, string)        {}
func (c *countingClient) Lost(*jsonrpc.Message, *jsonrpc.Error)          {}
func (c *countingClient) Deliver(_ string, _ jsonrpc.ID, message []byte) { c.bytes += len(message) }
func (c *countingClient) Serves(*jsonrpc.Message) bool                   { return false }

// benchBatch is how many requests are in flight at once.
const benchBatch = 256

type benchWorld struct {
	conn     *pushConn
	client   *countingClient
	caller   *multiplex.Caller
	requests []*jsonrpc.Message
	next     int // wire id
	answers  [][]byte
}

func newBenchWorld(b *testing.B, opts multiplex.Options, meta string) *benchWorld {
	w := &benchWorld{conn: &pushConn{}, client: &countingClient{}}
	w.caller = multiplex.New(w.conn, opts).Attach(w.client, "bench", "ann")
	for i := range benchBatch {
		w.requests = append(w.requests, parse(b, fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}%s}}`, i, meta)))
	}
	w.answers = make([][]byte, benchBatch)
	return w
}

func (w *benchWorld) forward() {
	for _, m := range w.requests {
		_ = w.caller.Forward(m)
	}
}

func (w *benchWorld) prepare() {
	for i := range w.answers {
		w.next++
		w.answers[i] = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"hello"}]}}`, w.next)
	}
}

func (w *benchWorld) resolve() {
	for _, a := range w.answers {
		w.conn.receive(a, nil)
	}
}

func benchModes(b *testing.B, run func(b *testing.B, w *benchWorld)) {
	for _, shared := range []bool{false, true} {
		for name, meta := range map[string]string{"plain": "", "token": `,"_meta":{"progressToken":7}`} {
			b.Run(fmt.Sprintf("shared=%v/%s", shared, name), func(b *testing.B) {
				b.ReportAllocs()
				run(b, newBenchWorld(b, multiplex.Options{Shared: shared}, meta))
			})
		}
	}
}

// BenchmarkForward is a client's request on its way: parsed message in, bytes to
// the Conn out.
func BenchmarkForward(b *testing.B) {
	benchModes(b, func(b *testing.B, w *benchWorld) {
		for done := 0; done < b.N; done += benchBatch {
			w.forward()
			b.StopTimer()
			w.prepare()
			w.resolve()
			b.StartTimer()
		}
	})
}

// BenchmarkResolve is the server's answer on its way back: bytes of the Conn in,
// bytes to the client out.
func BenchmarkResolve(b *testing.B) {
	benchModes(b, func(b *testing.B, w *benchWorld) {
		for done := 0; done < b.N; done += benchBatch {
			b.StopTimer()
			w.forward()
			w.prepare()
			b.StartTimer()
			w.resolve()
		}
		b.StopTimer()
		if w.client.answers < b.N {
			b.Errorf("%d of %d were answered", w.client.answers, b.N)
		}
	})
}
