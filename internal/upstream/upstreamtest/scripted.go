// Package upstreamtest holds what the tests of the packages below upstream share:
// a server that follows a script, and a session with it.
package upstreamtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Visit is one request that a scripted server got.
type Visit struct {
	Method, Body string
	Header       http.Header
	At           time.Time
}

// Scripted is a server that follows a test's script, and records its requests.
type Scripted struct {
	*httptest.Server // nil: without a socket
	do               Handler
	mu               sync.Mutex
	visits           []Visit
	came             chan struct{} // there may be more visits
}

// Handler answers a request. m is the JSON-RPC message of a POST; nil for other methods.
type Handler = func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message)

// Serve starts a server that answers with do.
func Serve(t *testing.T, do Handler) *Scripted {
	t.Helper()
	s := ServeHere(do)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHere is Serve without a socket, for tests in fake time.
func ServeHere(do Handler) *Scripted { return &Scripted{do: do, came: make(chan struct{}, 1)} }

// ServeHTTP records and answers a request.
func (s *Scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.visits = append(s.visits, Visit{r.Method, string(body), r.Header, time.Now()})
	s.mu.Unlock()
	select {
	case s.came <- struct{}{}:
	default:
	}
	m, _ := jsonrpc.Parse(body)
	s.do(w, r, m)
}

// Seen returns all visits until now.
func (s *Scripted) Seen() []Visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Visit(nil), s.visits...)
}

// Find returns the visits for which is holds.
func (s *Scripted) Find(is func(Visit) bool) (found []Visit) {
	for _, v := range s.Seen() {
		if is(v) {
			found = append(found, v)
		}
	}
	return found
}

// Wait waits until n visits for which is holds have come.
func (s *Scripted) Wait(t *testing.T, n int, is func(Visit) bool) []Visit {
	t.Helper()
	late := time.After(Patience)
	for {
		if found := s.Find(is); len(found) >= n {
			return found
		}
		select {
		case <-s.came:
		case <-late:
			t.Fatalf("the server got %+v, want %d more", s.Seen(), n)
		}
	}
}

// Method selects the visits with an HTTP method.
func Method(name string) func(Visit) bool { return func(v Visit) bool { return v.Method == name } }

// Posted selects the POSTs that have part in their body.
func Posted(part string) func(Visit) bool {
	return func(v Visit) bool { return v.Method == "POST" && strings.Contains(v.Body, part) }
}

// AnswerJSON writes a JSON body.
func AnswerJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body)
}

// Stream begins an event stream and returns a function that writes a block.
func Stream(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	return func(format string, args ...any) {
		fmt.Fprintf(w, format+"\n\n", args...)
		w.(http.Flusher).Flush()
	}
}

// TestInBubble runs a subtest in fake time.
func TestInBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// Session answers the requests that open and end a session with the id s-1, and leaves
// the others to do. Without do they get 405.
func Session(do Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case m != nil && m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s-1")
			AnswerJSON(w, string(InitAnswer(m)))
		case m != nil && m.Method == "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
		case do != nil:
			do(w, r, m)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
}

// Calls is a Session that leaves tools/call to do, answers all other messages in good
// order, and has no stream of its own.
func Calls(do Handler) Handler {
	return Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case m == nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "tools/call":
			do(w, r, m)
		case m.Kind == jsonrpc.Request:
			Result(w, m)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

// Result answers m with an empty result.
func Result(w http.ResponseWriter, m *jsonrpc.Message) {
	AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
}

// InitAnswer returns InitResult as the answer to m.
func InitAnswer(m *jsonrpc.Message) []byte {
	parsed, err := jsonrpc.Parse([]byte(InitResult))
	if err != nil {
		panic(err)
	}
	return parsed.WithID(m.ID)
}

// Streamable returns s as an upstream over Streamable HTTP.
func Streamable(s *Scripted) remote.URL {
	up := remote.HTTPHandler(s).(remote.URL)
	if s.Server != nil {
		up = remote.URL{Address: s.URL + "/mcp"}
	}
	up.Transport = remote.TransportStreamable
	return up
}
