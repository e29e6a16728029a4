package diagnosis_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// asked returns what the server asks before it answers a method, the reply that it wants, and the answer.
func asked(method string) (question, want, answer string) {
	switch method {
	case "initialize":
		return `"method":"ping"`, "{}", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"asker","version":"1"}}`
	case "tools/list":
		return `"method":"roots/list"`, `{"code":-32601,"message":"method not found"}`, `{"tools":[{},{}]}`
	}
	return "", "", ""
}

// asking is a server over both transports that asks its client something before each answer, with the id
// of the client's request, and answers once it has the reply.
func asking(t *testing.T) http.Handler {
	t.Helper()
	replies, stream := make(chan string, 1), make(chan string, 10) // stream is that of HTTP+SSE
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID            json.RawMessage
			Method        string
			Result, Error json.RawMessage
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		switch {
		case r.Method == http.MethodGet && r.Header.Get("Mcp-Session-Id") != "":
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: endpoint\ndata: /post\n\n")
			for {
				_ = http.NewResponseController(w).Flush()
				select {
				case message := <-stream:
					fmt.Fprintf(w, "data: %s\n\n", message)
				case <-r.Context().Done():
					return
				}
			}
		case m.Method == "" && len(m.ID) > 0: // a reply
			replies <- string(m.Result) + string(m.Error)
		}
		question, want, answer := asked(m.Method)
		if question == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		question, answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, question), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer)
		say := func(message string) { stream <- message }
		if r.URL.Path == "/post" {
			w.WriteHeader(http.StatusAccepted)
		} else {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Mcp-Session-Id", "one")
			say = func(message string) {
				fmt.Fprintf(w, "data: %s\n\n", message)
				_ = http.NewResponseController(w).Flush()
			}
		}
		_ = http.NewResponseController(w).Flush()
		say(question)
		finish := func() {
			select {
			case got := <-replies:
				if got != want {
					t.Errorf("the reply to %s is %s, want %s", question, got, want)
				}
				say(answer)
			case <-t.Context().Done():
			}
		}
		if r.URL.Path == "/post" { // the client reads its stream when the POST has ended
			go finish() // ends with the test
			return
		}
		finish()
	})
}

// A server that asks something gets a reply, and its request is not taken for the answer.
func TestServerThatAsks(t *testing.T) {
	got, works := look(t, diagnosis.Options{URL: serve(t, asking(t)) + "/mcp"})
	if !works {
		t.Error("a client could not work there")
	}
	wantLines(t, got, "Streamable HTTP: initialize: ok: asker 1", "Streamable HTTP: a call: ok: 2 tools",
		"HTTP+SSE: initialize: ok: asker 1", "HTTP+SSE: a call: ok: 2 tools")
}
