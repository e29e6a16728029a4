package load_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeServer is an MCP server over HTTP+SSE that can be made to do wrong.
type fakeServer struct {
	url string

	// call answers a tools/call, in place of a right server. calls counts them,
	// from 1; the first one is the scout's. It is called with mu held.
	call func(s *fakeServer, from *link, r request)
	// reply is called with mu held when an answer of the client has come.
	reply func(s *fakeServer)
	// tools is the tool list, a right one if it is empty.
	tools string
	// both sends answers under both names, as to a client that does not
	// initialize.
	both bool
	// refuse is the status of POSTs of calls but the first; 0: 202.
	refuse int
	// refuseFrom is the first stream that is refused, from 1; 0: none is.
	refuseFrom int

	mu      sync.Mutex
	links   []*link    // guarded by mu; those that are open
	opened  int        // guarded by mu
	calls   int        // guarded by mu
	replies []string   // guarded by mu: answers of clients, id and content
	held    []heldCall // guarded by mu: for call to use
	done    bool       // guarded by mu: for call to use
}

type heldCall struct {
	from *link
	request
}

// link is a stream. Its room is more than any test sends.
type link struct {
	number int // from 1, the scout's
	out    chan string
	sent   int           // events
	cut    chan struct{} // closed by a call that ends the stream
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

func (r request) number() int {
	n, _ := strconv.Atoi(string(r.ID)) // the ids of calls are numbers
	return n
}

func (r request) secret() string { return r.Params.Arguments["message"] }

// serve starts the server. The cleanup ends it.
func (s *fakeServer) serve(t *testing.T) *fakeServer {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL + "/sse"
	return s
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.stream(w, r)
		return
	}
	var req request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if status := s.receive(r.URL.Path, req); status != http.StatusAccepted {
		http.Error(w, "refused", status)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (s *fakeServer) stream(w http.ResponseWriter, r *http.Request) {
	l := s.open()
	defer s.close(l)
	if s.refuseFrom > 0 && l.number >= s.refuseFrom {
		http.Error(w, "no more", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	fmt.Fprintf(w, "\uFEFFevent: endpoint\ndata: /post/%d\n\n", l.number) // after a byte order mark
	for {
		_ = flush.Flush()
		select {
		case block := <-l.out:
			fmt.Fprint(w, block)
		case <-l.cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *fakeServer) open() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	l := &link{number: s.opened, out: make(chan string, 10_000), cut: make(chan struct{})}
	s.links = append(s.links, l)
	if s.both {
		l.event("mcp-response", `{"jsonrpc":"2.0","id":"auto-1","result":{"protocolVersion":"2025-11-25"}}`)
	}
	return l
}

func (s *fakeServer) close(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = slices.DeleteFunc(s.links, func(open *link) bool { return open == l })
}

// receive handles a message that came for the link of the path.
func (s *fakeServer) receive(path string, r request) (status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.links, func(l *link) bool { return path == fmt.Sprintf("/post/%d", l.number) })
	if at < 0 {
		return http.StatusNotFound
	}
	from := s.links[at]
	switch {
	case r.Method == "":
		s.replies = append(s.replies, fmt.Sprintf("%s %s%s", r.ID, r.Result, r.Error))
		if s.reply != nil {
			s.reply(s)
		}
	case r.Method == "initialize":
		s.result(from, r.ID, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"leaktest-abcdefghijklmnopqrstuvwxyz"}}`)
	case r.Method == "ping":
		s.result(from, r.ID, "{}")
	case r.Method == "tools/list":
		s.result(from, r.ID, s.toolList())
	case r.Method == "tools/call":
		s.calls++
		if s.refuse > 0 && s.calls > 1 {
			return s.refuse
		}
		if s.call == nil || s.calls == 1 {
			s.echo(from, r)
		} else {
			s.call(s, from, r)
		}
	}
	return http.StatusAccepted
}

func (s *fakeServer) toolList() string {
	if s.tools != "" {
		return s.tools
	}
	return `{"tools":[{"name":"other","inputSchema":{}},{"name":"echo","inputSchema":{"type":"object",` +
		`"properties":{"message":{"type":"string"},"times":{"type":"integer"}}}}]}`
}

// echo answers right, progress first.
func (s *fakeServer) echo(to *link, r request) {
	if r.Params.Name == "progress" {
		to.progress(r.Params.Meta.Token, r.secret())
	}
	s.text(to, r.ID, r.secret())
}

// text answers with a tool's result.
func (s *fakeServer) text(to *link, id json.RawMessage, text string) {
	s.result(to, id, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

func (s *fakeServer) result(to *link, id json.RawMessage, result string) {
	to.event("message", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
	if s.both {
		to.event("mcp-response", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
	}
}

// other returns a stream that is not the given one, nor the scout's, which may be over.
func (s *fakeServer) other(than *link) *link {
	return s.links[slices.IndexFunc(s.links, func(l *link) bool { return l != than && l.number > 1 })]
}

func (l *link) progress(token json.RawMessage, message string) {
	l.event("message", fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress",`+
		`"params":{"progressToken":%s,"progress":1,"message":%q}}`, token, message))
}

// start says that a call waits for the start of the server, as the gateway does, and something more.
func (l *link) start(token json.RawMessage, more string) {
	l.event("message", fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress",`+
		`"params":{"progressToken":%s,"progress":-1e-06,"message":"starting the server","more":%q}}`, token, more))
}

// event sends an event in one of the forms that it may have.
func (l *link) event(name, data string) {
	l.sent++
	data = strings.Replace(data, `,"`, ",\n\"", l.sent%2)
	block := "id: 1\ndata: " + strings.ReplaceAll(data, "\n", "\ndata:") + "\n: comment\nevent: " + name + "\nretry: 5\n\n"
	l.out <- strings.ReplaceAll(block, "\n", []string{"\n", "\r\n", "\r"}[l.sent%3])
}
