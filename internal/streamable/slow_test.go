package streamable_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A client that reads none of its answers is closed once the process holds as many bytes as
// it may, with a session or without.
func TestUnreadAnswersAreBounded(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
			const others = 1<<30 - 8<<20
			f.budget.ForceReserve(others)
			defer f.budget.ForceReserve(-others)
			f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
				large := []byte(`{"x":"` + strings.Repeat("x", 2<<20) + `"}`)
				n, _ := rawjson.Integer([]byte(m.ID))
				due := time.Second + time.Duration(n)*time.Millisecond // when all have asked, one after the other
				time.AfterFunc(due, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, large), "") })
			}
			header, params := in("", "Accept", "text/event-stream, application/json"), `{}`
			if version == "2025-11-25" {
				header[1] = f.initialize(version)
			} else {
				header = append(header, "MCP-Protocol-Version", version, "Mcp-Method", "work")
				params = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
			}
			var unread sync.WaitGroup
			over := make(chan struct{})
			for n := range 8 {
				unread.Go(func() {
					res := f.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"work","params":%s}`, n+1, params), header...)
					<-over
					res.close()
				})
			}
			time.Sleep(2 * time.Second)
			if c := f.backend.last(); c.Reason() != connstate.ClosedSlow {
				t.Errorf("%s: the connection is %v for %q, want closed for slow", version, c.State(), c.Reason())
			}
			close(over)
			unread.Wait()
		})
	}
}

// stateless is a request of MCP 2026-07-28 that is never answered.
const stateless = `{"jsonrpc":"2.0","id":1,"method":"never","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// A client over HTTP/2 that lets nothing be written holds no goroutine for its POSTs,
// answered or refused, although the server has no WriteTimeout.
func TestHTTP2ClientWithoutWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, streamable.Options{}, connstate.Limits{})
		f.srv.Stop()
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		srv := pipetest.Serve(f.handler, &protocols, nil)
		defer func() {
			srv.Stop()
			f.closeAll()
		}()
		conn := srv.Dial()
		defer conn.Close()
		time.AfterFunc(time.Minute, func() { conn.Close() }) // for a test that fails
		client := ssetest.NewWindowless(conn)
		for _, body := range []string{initialize, request("1", "ping"), request("1", "echo"), "refused", stateless} {
			client.Send("/mcp", body)
		}
		ssetest.Must(t, client.AwaitResets())
	})
}

// A client that closes its side of the TCP connection gets no answer, not an empty one,
// because it cannot be told from one that is gone.
func TestHalfClosedClientGetsNoEmptyAnswer(t *testing.T) {
	for version, body := range map[string]string{"2025-11-25": request("1", "never"), "2026-07-28": stateless} {
		t.Run(version, func(t *testing.T) {
			f := newFixture(t, streamable.Options{}, connstate.Limits{})
			f.handler.NeverStream()
			defer f.srv.Close()
			srv := httptest.NewServer(f.handler)
			defer srv.Close()
			defer f.closeAll()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			ssetest.Must(t, err)
			defer conn.Close()
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Method: never\r\nMCP-Protocol-Version: %s\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", version, len(body), body)
			ssetest.Must(t, conn.(*net.TCPConn).CloseWrite())
			if got, _ := io.ReadAll(conn); len(got) > 0 {
				t.Errorf("got %q", got)
			}
		})
	}
}
