package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// abortable is a server whose processes can be killed.
type abortable struct {
	*server
	aborted *atomic.Int64
}

func (a abortable) Abort() { a.aborted.Add(1) }

// Abort reaches the servers before that still have sessions, and no others.
func TestAbortAfterReconfigure(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		var aborted [4]atomic.Int64
		for i := range aborted {
			reconfigure(t, g, abortable{&server{}, &aborted[i]}, gateway.Options{})
			if i == 0 {
				p := connectReady(t, g)
				p.post(request("1", "hang"))
			}
			synctest.Wait()
		}
		forprogram.Abort(g)
		for i, want := range []int64{1, 0, 1, 1} { // of the third nobody has looked since
			equal(t, fmt.Sprint("aborted, server ", i), aborted[i].Load(), want)
		}
	})
}

func TestUnknownVersionIsWarnedOfOnce(t *testing.T) {
	var log bytes.Buffer
	u := &server{handle: on("initialize", func(s *serverSession, m *jsonrpc.Message) {
		s.say(string(jsonrpc.NewResult(m.ID, []byte(`{"protocolVersion":"2031-01-01","capabilities":{}}`))))
	})}
	inFakeTime(t, u, gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, g *gateway.Gateway) {
		for range 3 {
			connect(t, g, plain).wantState(connstate.Ready)
		}
	})
	equal(t, "warnings", strings.Count(log.String(), "unknown protocol version"), 1)
}
