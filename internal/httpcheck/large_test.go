package httpcheck_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A client that sends all of its body before it reads, as Python's http.client does, reads why that was
// refused, with the id of its request if that stands in front, and may go on with its TCP connection.
func TestClientReadsThatItsBodyIsTooLarge(t *testing.T) {
	h := newTransport(t, httpcheck.Options{MaxMessageBytes: 1 << 20})
	srv := httptest.NewServer(h)
	defer srv.Close()
	pad := strings.Repeat("x", 8<<20)
	for name, tt := range map[string]struct{ body, id string }{
		"the id in front":      {`{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":"` + pad + `"}}`, `"a"`},
		"a response":           {`{"jsonrpc":"2.0","id":7,"result":{"x":"` + pad + `"}}`, "null"},
		"the id behind":        {`{"method":"m","params":{"x":"` + pad + `"},"id":7}`, "null"},
		"an id in the params":  {`{"method":"m","params":{"id":7,"x":"` + pad + `"}}`, "null"},
		"two that may be ids":  {`{"ID":1,"id":7,"method":"m","params":{"x":"` + pad + `"}}`, "null"},
		"no JSON":              {pad, "null"},
		"a method that is cut": {`{"id":7,"method":"` + pad + `"}`, "null"},
	} {
		for _, chunked := range []bool{false, true} {
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			ssetest.Must(t, err)
			in := bufio.NewReader(conn)
			for range 2 {
				head, tail := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(tt.body)), ""
				if chunked {
					head, tail = fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(tt.body)), "\r\n0\r\n\r\n"
				}
				_, err = io.WriteString(conn, "POST /t HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+head+tt.body+tail)
				ssetest.Must(t, err)
				res, err := http.ReadResponse(in, nil)
				ssetest.Must(t, err)
				text, err := io.ReadAll(res.Body)
				ssetest.Must(t, err)
				ssetest.Want(t, name+": status", res.StatusCode, http.StatusRequestEntityTooLarge)
				ssetest.WantText(t, name, string(text), `"id":`+tt.id+`,`, "max-message-bytes")
			}
			conn.Close()
		}
	}
}
