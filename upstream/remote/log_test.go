package remote_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

// logBuffer is a buffer for the log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// count returns how many lines have part in them.
func (b *logBuffer) count(part string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.b.String()) {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// Whatever a remote server sends, it cannot flood the log: of each kind of line a few
// are written.
func TestARemoteServerCannotFloodTheLog(t *testing.T) {
	const n = 20_000
	for name, tc := range map[string]struct {
		message string
		unasked string // events on the stream of the GET
		beside  string // events before each answer
	}{
		"elements of a batch":     {message: "server sent an invalid message", unasked: "data: [" + strings.Repeat("1,", n) + "1]\n\n"},
		"events":                  {message: "server sent an invalid message", unasked: strings.Repeat("data: x\n\n", n)},
		"events beside an answer": {message: "server sent an invalid message", beside: "data: x\n\n"},
	} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			var logs logBuffer
			s := upstreamtest.ServeHere(upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				send := upstreamtest.Stream(w)
				if m == nil {
					send("%s", tc.unasked)
					<-r.Context().Done()
					return
				}
				send("%s", tc.beside+"data: "+string(jsonrpc.NewResult(m.ID, []byte("{}"))))
			}))
			up := upstreamtest.Streamable(s)
			up.Logger = slog.New(slog.NewTextHandler(&logs, nil))
			for range 2 { // sessions with one server share the limits
				k := upstreamtest.Open(t, up)
				for id := range 20 {
					k.Ping(id + 2)
				}
			}
			synctest.Wait() // the stream of the GET has been read
			if got := logs.count(tc.message); got != 5 {
				t.Errorf("%d lines, want 5", got)
			}
		})
	}
}
