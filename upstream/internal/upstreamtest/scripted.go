// Package upstreamtest holds what the tests of the packages below upstream share:
// a server that follows a script, and a session with it.
package upstreamtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

const (
	Initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	Initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	InitResult  = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
	Call2       = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`
	Result2     = `{"jsonrpc":"2.0","id":2,"result":{"n":9007199254740993,"z":1.50,"x":{"b":1,"a":2}},"extra":[1]}`
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

// Talk is a session under test.
type Talk struct {
	t    *testing.T
	Conn jsonrpc.Attributed
}

// DialTalk opens a session that is closed with the test.
func DialTalk(t *testing.T, up jsonrpc.Dialer) *Talk {
	t.Helper()
	conn, err := up.Dial(t.Context())
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return NewTalk(t, conn)
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
	if err := k.Conn.Send([]byte(msg)); err != nil {
		k.t.Fatalf("Send %.80s: %v", msg, err)
	}
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
	for {
		if a := k.Next(); a.Err != nil {
			return a.Err
		}
	}
}

// failure is an error response with the gateway's data.
type failure struct {
	ID    json.RawMessage
	Error struct {
		Code    int
		Message string
		Data    struct {
			Reason       string
			Retryable    bool
			Status       int
			RetryAfterMs int64
		}
	}
}

// Fails returns the next message, which has to be an error response.
func (k *Talk) Fails() failure {
	k.t.Helper()
	msg, _ := k.Recv()
	var f failure
	if _ = json.Unmarshal([]byte(msg), &f); f.Error.Code == 0 { // other data stays out
		k.t.Fatalf("got %s, want an error", msg)
	}
	return f
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

// Gets checks that the next message is want, and that it belongs to no request.
func (k *Talk) Gets(want string) {
	k.t.Helper()
	if got, id := k.Recv(); got != want || id != "" {
		k.t.Fatalf("got %s with request %q, want %s", got, id, want)
	}
}

// Ping sends a ping and checks its answer.
func (k *Talk) Ping(id int) {
	k.t.Helper()
	k.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
	if got, _ := k.Recv(); !strings.Contains(got, fmt.Sprintf(`"id":%d,"result"`, id)) {
		k.t.Fatalf("ping got %s", got)
	}
}

// Note is a notification with a number in it.
const Note = `{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d}}`
