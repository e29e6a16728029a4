package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// chaosRemote is a chaotic MCP server at a URL: Streamable HTTP (2025-11-25) at /mcp,
// HTTP+SSE (2024-11-05) at /sse.
type chaosRemote struct {
	*httptest.Server
	mind *chaosMind
	down atomic.Bool   // answers every request with 503
	over chan struct{} // closed at the end of the test: whoever hangs goes on
	wg   sync.WaitGroup

	mu      sync.Mutex
	next    int                     // guarded by mu
	known   map[string]bool         // Streamable HTTP sessions, guarded by mu
	streams map[string]*chaosStream // HTTP+SSE sessions, guarded by mu
}

func startChaosRemote(t *testing.T, mind *chaosMind) *chaosRemote {
	t.Helper()
	r := &chaosRemote{mind: mind, over: make(chan struct{}), known: map[string]bool{}, streams: map[string]*chaosStream{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", r.streamable)
	mux.HandleFunc("GET /sse", r.openSSE)
	mux.HandleFunc("POST /message", r.postSSE)
	r.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		close(r.over)
		r.CloseClientConnections()
		r.Close()
		r.wg.Wait()
	})
	return r
}

// trouble is what happens to a remote server from time to time: its connections
// break, it forgets its sessions, or it is down for a while.
func (r *chaosRemote) trouble(rng *rand.Rand) {
	switch rng.IntN(4) {
	case 0, 1:
		r.CloseClientConnections()
	case 2:
		r.mu.Lock()
		clear(r.known)
		r.mu.Unlock()
	default:
		r.down.Store(true)
		time.Sleep(upTo(rng, time.Second))
		r.down.Store(false)
	}
}

func (r *chaosRemote) name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	return fmt.Sprint("session-", r.next)
}

// streamable serves one request of Streamable HTTP.
func (r *chaosRemote) streamable(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if r.down.Load() && !r.mind.calm() || err != nil {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	session, text := req.Header.Get("Mcp-Session-Id"), string(body)
	r.mu.Lock()
	known := r.known[session]
	r.mu.Unlock()
	switch {
	case req.Method == http.MethodDelete:
		return
	case req.Method != http.MethodPost:
		http.Error(w, "no", http.StatusMethodNotAllowed)
	case strings.Contains(text, `"method":"initialize"`):
		session = r.name()
		r.mu.Lock()
		r.known[session] = true
		r.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", session)
		r.respond(w, req, body)
	case !known && session != "":
		http.Error(w, "who?", http.StatusNotFound)
	case !strings.Contains(text, `"method"`) || strings.Contains(text, `"method":"notifications/`):
		w.WriteHeader(http.StatusAccepted)
	default:
		r.respond(w, req, body)
	}
}

// respond answers a request with an event stream, mostly.
func (r *chaosRemote) respond(w http.ResponseWriter, req *http.Request, body []byte) {
	v := &chaosResponse{ctx: req.Context(), over: r.over}
	v.put = func(text string) {
		_, _ = io.WriteString(w, text) // the gateway may be gone
		_ = http.NewResponseController(w).Flush()
	}
	if odd := rand.IntN(100); !r.mind.calm() && nonceOf.Match(body) {
		switch odd {
		case 0:
			http.Error(w, "oops", http.StatusTeapot)
			return
		case 1:
			w.WriteHeader(http.StatusAccepted)
			return
		case 2:
			_, _ = io.WriteString(w, "<h1>Welcome</h1>") // the gateway may be gone
			return
		case 3:
			panic(http.ErrAbortHandler)
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	r.mind.serve(body, v)
}

// chaosEvents speaks in events. It says one message after the other, in parts or whole.
type chaosEvents struct {
	mu  sync.Mutex
	put func(text string) // writes to the stream
}

func (v *chaosEvents) say(message string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.put("event: message\ndata: " + message + "\n\n")
}

func (v *chaosEvents) halves(message string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.put("event: message\ndata: " + message[:len(message)/2])
	time.Sleep(300 * time.Millisecond)
	v.put(message[len(message)/2:] + "\n\n")
}

func (v *chaosEvents) noise() {
	v.put("hello\n\ndata: no json\n\nid: \x00\nretry: -1\ndata\n\n: comment\n\n")
}

// chaosResponse speaks in the response to a POST, from the goroutine of its handler.
type chaosResponse struct {
	chaosEvents
	ctx  context.Context
	over chan struct{}
}

func (v *chaosResponse) hang() {
	select {
	case <-v.ctx.Done():
	case <-v.over:
	}
}

func (v *chaosResponse) die() {
	v.put("data: {\"jsonrpc\":")
	panic(http.ErrAbortHandler)
}

// chaosStream speaks on the stream of an HTTP+SSE session.
type chaosStream struct {
	chaosEvents
	messages chan string   // what goes on the stream as it is
	gone     chan struct{} // closed at the end of the stream
	end      context.CancelFunc
}

func (s *chaosStream) hang() {}

func (s *chaosStream) die() { s.end() }

// openSSE serves the stream of an HTTP+SSE session.
func (r *chaosRemote) openSSE(w http.ResponseWriter, req *http.Request) {
	if r.down.Load() && !r.mind.calm() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	s, name := &chaosStream{messages: make(chan string), gone: make(chan struct{}), end: cancel}, r.name()
	s.put = func(text string) {
		select {
		case s.messages <- text:
		case <-s.gone:
		}
	}
	defer close(s.gone)
	r.mu.Lock()
	r.streams[name] = s
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.streams, name)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	fmt.Fprintf(w, "event: endpoint\ndata: /message?session=%s\n\n", name)
	for out.Flush() == nil {
		select {
		case <-ctx.Done():
			return
		case <-r.over:
			return
		case text := <-s.messages:
			_, _ = io.WriteString(w, text) // Flush tells
		}
	}
}

// postSSE serves a POST of an HTTP+SSE session.
func (r *chaosRemote) postSSE(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	s := r.streams[req.URL.Query().Get("session")]
	r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	switch {
	case s == nil || err != nil:
		http.Error(w, "who?", http.StatusNotFound)
	case r.down.Load() && !r.mind.calm():
		http.Error(w, "down", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusAccepted)
		r.wg.Go(func() { r.mind.serve(body, s) }) // ends with the fate of the request, in a few seconds
	}
}
