package upstream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	initResult  = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
	call2       = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`
	result2     = `{"jsonrpc":"2.0","id":2,"result":{"n":9007199254740993,"z":1.50,"x":{"b":1,"a":2}},"extra":[1]}`
)

// visit is one request that a scripted server got.
type visit struct {
	method, body string
	header       http.Header
	at           time.Time
}

// scripted is a server that does what a test says, and notes what it was asked.
type scripted struct {
	*httptest.Server // nil: without a socket
	handler          http.Handler
	mu               sync.Mutex
	visits           []visit
	came             chan struct{} // there may be more visits
}

type handler = func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message)

// serve starts a server that answers with do, which gets the JSON-RPC message of a
// POST, nil of other methods.
func serve(t *testing.T, do handler) *scripted {
	t.Helper()
	s := serveHere(do)
	s.Server = httptest.NewServer(s.handler)
	t.Cleanup(s.Close)
	return s
}

// serveHere is serve without a socket, for tests in fake time.
func serveHere(do handler) *scripted {
	s := &scripted{came: make(chan struct{}, 1)}
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.visits = append(s.visits, visit{r.Method, string(body), r.Header, time.Now()})
		s.mu.Unlock()
		select {
		case s.came <- struct{}{}:
		default:
		}
		m, _ := jsonrpc.Parse(body)
		do(w, r, m)
	})
	return s
}

// newTLS starts a server with a certificate that nobody trusts, and without a log of
// that.
func newTLS(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// seen returns what came so far.
func (s *scripted) seen() []visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]visit(nil), s.visits...)
}

// find returns the visits for which is holds.
func (s *scripted) find(is func(visit) bool) (found []visit) {
	for _, v := range s.seen() {
		if is(v) {
			found = append(found, v)
		}
	}
	return found
}

// wait waits until n visits for which is holds have come.
func (s *scripted) wait(t *testing.T, n int, is func(visit) bool) []visit {
	t.Helper()
	late := time.After(patience)
	for {
		if found := s.find(is); len(found) >= n {
			return found
		}
		select {
		case <-s.came:
		case <-late:
			t.Fatalf("the server got %+v, want %d more", s.seen(), n)
		}
	}
}

func method(name string) func(visit) bool { return func(v visit) bool { return v.method == name } }
func posted(part string) func(visit) bool {
	return func(v visit) bool { return v.method == "POST" && strings.Contains(v.body, part) }
}

// answerJSON writes messages as a JSON body each server would write.
func answerJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body)
}

// stream begins an event stream and returns what writes a block.
func stream(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	return func(format string, args ...any) {
		fmt.Fprintf(w, format+"\n\n", args...)
		w.(http.Flusher).Flush()
	}
}

// testInBubble runs a subtest in fake time.
func testInBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// session answers what opens and ends a session with the id s-1, and leaves the
// rest to do. GET is 405.
func session(do handler) handler {
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case m != nil && m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s-1")
			answerJSON(w, string(initAnswer(m)))
		case m != nil && m.Method == "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
		case do != nil:
			do(w, r, m)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
}

func initAnswer(m *jsonrpc.Message) []byte {
	parsed, err := jsonrpc.Parse([]byte(initResult))
	if err != nil {
		panic(err)
	}
	return parsed.WithID(m.ID)
}

// talk is a session under test.
type talk struct {
	t    *testing.T
	conn jsonrpc.Attributed
}

// dialTalk opens a session that is closed with the test.
func dialTalk(t *testing.T, up jsonrpc.Dialer) *talk {
	t.Helper()
	conn, err := up.Dial(t.Context())
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &talk{t, conn.(jsonrpc.Attributed)}
}

// open is dialTalk with the handshake done.
func open(t *testing.T, up jsonrpc.Dialer) *talk {
	t.Helper()
	k := dialTalk(t, up)
	k.send(initialize)
	if got, _ := k.recv(); got != initResult {
		t.Fatalf("initialize got %s", got)
	}
	k.send(initialized)
	return k
}

func (k *talk) send(msg string) {
	k.t.Helper()
	if err := k.conn.Send([]byte(msg)); err != nil {
		k.t.Fatalf("Send %.80s: %v", msg, err)
	}
}

type arrival struct {
	msg []byte
	id  jsonrpc.ID
	err error
}

func (k *talk) next() arrival {
	k.t.Helper()
	got := make(chan arrival, 1)
	go func() { // ends with the session at the latest
		msg, id, err := k.conn.RecvFor()
		got <- arrival{msg, id, err}
	}()
	select {
	case a := <-got:
		return a
	case <-time.After(patience):
		k.t.Fatal("nothing came")
		return arrival{}
	}
}

// recv returns the next message and the request that it came with.
func (k *talk) recv() (string, jsonrpc.ID) {
	k.t.Helper()
	a := k.next()
	if a.err != nil {
		k.t.Fatalf("Recv: %v", a.err)
	}
	return string(a.msg), a.id
}

// ended returns the error with which the session ends.
func (k *talk) ended() error {
	k.t.Helper()
	for {
		if a := k.next(); a.err != nil {
			return a.err
		}
	}
}

// failure is an error response, with the data that our own have.
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

// fails returns the next message, which has to be an error response.
func (k *talk) fails() failure {
	k.t.Helper()
	msg, _ := k.recv()
	var f failure
	if _ = json.Unmarshal([]byte(msg), &f); f.Error.Code == 0 { // other data stays out
		k.t.Fatalf("got %s, want an error", msg)
	}
	return f
}

func streamable(s *scripted) upstream.URL {
	up := upstream.HTTPHandler(s.handler).(upstream.URL)
	if s.Server != nil {
		up = upstream.URL{Address: s.URL + "/mcp"}
	}
	up.Transport = upstream.TransportStreamable
	return up
}

func (k *talk) gets(want string) {
	k.t.Helper()
	if got, id := k.recv(); got != want || id != "" {
		k.t.Fatalf("got %s with request %q, want %s", got, id, want)
	}
}

func (k *talk) ping(id int) {
	k.t.Helper()
	k.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
	if got, _ := k.recv(); !strings.Contains(got, fmt.Sprintf(`"id":%d,"result"`, id)) {
		k.t.Fatalf("ping got %s", got)
	}
}

const note = `{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d}}`
