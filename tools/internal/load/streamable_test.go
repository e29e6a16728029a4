package load_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// fakeStreamable is an MCP server over Streamable HTTP that can be made to do wrong. It
// has sessions unless it is stateless.
type fakeStreamable struct {
	// call returns what the response to a tools/call holds, in place of a right server.
	// own takes messages for the session's own stream. calls counts them, from 1; the first
	// one is the scout's. It is called with mu held.
	call func(s *fakeStreamable, own chan<- string, r request) []string

	stateless bool
	noStream  bool // GET gets 405

	mu       sync.Mutex
	calls    int                    // guarded by mu
	sessions map[string]chan string // guarded by mu: the messages for the own stream
	owners   map[string]string      // guarded by mu: the Authorization header that opened a session
	ended    int                    // guarded by mu: sessions, by DELETE
}

func (s *fakeStreamable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	s.mu.Lock()
	own, known := s.sessions[id]
	known = known && s.owners[id] == r.Header.Get("Authorization")
	s.mu.Unlock()
	switch {
	case s.stateless && (id != "" || r.Header.Get("MCP-Protocol-Version") != "2026-07-28"):
		http.Error(w, "no sessions here", http.StatusBadRequest)
	case id != "" && !known:
		http.Error(w, "no such session", http.StatusNotFound)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		s.ended++
		s.mu.Unlock()
	case r.Method == http.MethodGet && s.noStream:
		http.Error(w, "no stream", http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet:
		s.stream(w, r, own)
	default:
		s.post(w, r, own)
	}
}

func (s *fakeStreamable) stream(w http.ResponseWriter, r *http.Request, own chan string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case m := <-own:
			fmt.Fprintf(w, "id: 1\ndata: %s\n\n", m)
		case <-r.Context().Done():
			return
		}
	}
}

func (s *fakeStreamable) post(w http.ResponseWriter, r *http.Request, own chan string) {
	body, _ := io.ReadAll(r.Body)
	var m request
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.stateless && (r.Header.Get("Mcp-Method") != m.Method || r.Header.Get("Mcp-Name") != m.Params.Name || !strings.Contains(string(body), "/clientCapabilities")) {
		http.Error(w, "headers", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if own == nil && !s.stateless && m.Method != "" {
		s.enter(w, r)
	}
	result := `{}`
	switch {
	case m.ID == nil || m.Method == "":
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"properties":{"message":{"type":"string"}}}}]}`
	case m.Method == "tools/call":
		w.Header().Set("Content-Type", "text/event-stream")
		for _, answer := range s.answers(own, m) {
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", answer)
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (s *fakeStreamable) enter(w http.ResponseWriter, r *http.Request) {
	if s.sessions == nil {
		s.sessions, s.owners = map[string]chan string{}, map[string]string{}
	}
	id := fmt.Sprint("session-", len(s.sessions))
	s.sessions[id] = make(chan string, 10_000) // more than any test sends
	s.owners[id] = r.Header.Get("Authorization")
	w.Header().Set("Mcp-Session-Id", id)
}

func (s *fakeStreamable) answers(own chan<- string, m request) []string {
	s.calls++
	if s.call != nil && s.calls > 1 {
		return s.call(s, own, m)
	}
	return right(m)
}

// right is what a right server answers, progress first.
func right(m request) (all []string) {
	if m.Params.Name == "progress" {
		all = append(all, progressOf(m))
	}
	return append(all, resultOf(m))
}

func progressOf(m request) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":%q}}`, m.Params.Meta.Token, m.secret())
}

func resultOf(m request) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, m.ID, m.secret())
}

// at serves it, and returns the URL.
func (s *fakeStreamable) at(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv.URL + "/mcp"
}

func TestRightStreamableServerIsClean(t *testing.T) {
	for name, c := range map[string]struct {
		server *fakeStreamable
		change func(*load.Options)
	}{
		"Sessions":     {&fakeStreamable{}, func(*load.Options) {}},
		"NoStream":     {&fakeStreamable{noStream: true}, func(*load.Options) {}},
		"NoInitialize": {&fakeStreamable{}, func(o *load.Options) { o.NoInitialize = true }},
		"Principals":   {&fakeStreamable{}, func(o *load.Options) { o.Tokens = []string{"anna", "ben"} }},
		"Stateless":    {&fakeStreamable{stateless: true}, func(o *load.Options) { o.Transport = load.Stateless }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := quick()
			opts.Transport, opts.ProgressTool, opts.ProgressArgument = load.Streamable, "progress", "message"
			c.change(&opts)
			r := mustRun(t, c.server.at(t), opts)
			if r.Verdict() != load.Clean || r.Answered != 160 || r.Progress != 80 {
				t.Errorf("report = %+v, want 160 right answers and 80 progress", r)
			}
			if want := len(c.server.sessions); c.server.ended != want {
				t.Errorf("%d sessions were ended of %d", c.server.ended, want)
			}
			owners := map[string]int{}
			for _, owner := range c.server.owners {
				owners[owner]++
			}
			if len(opts.Tokens) > 0 && (owners["Bearer anna"] < 4 || owners["Bearer ben"] != 4) {
				t.Errorf("the sessions are of %v, want two principals", owners)
			}
		})
	}
}

// misplace sends a message of a call in the response to a later call of the same session.
func misplace(of func(m request) string) func(s *fakeStreamable, own chan<- string, m request) []string {
	kept := map[chan<- string][]request{}
	return func(s *fakeStreamable, own chan<- string, m request) []string {
		if s.calls == 20 {
			kept[own] = append(kept[own], m)
		} else if k := kept[own]; len(k) > 0 {
			delete(kept, own)
			return append([]string{of(k[0])}, right(m)...)
		}
		return right(m)
	}
}

func TestWrongStreamableServersAreDetected(t *testing.T) {
	asked := func(m request) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":"sampling/createMessage","params":{"text":%q}}`, m.secret())
	}
	type answer = func(s *fakeStreamable, own chan<- string, m request) []string
	onOwnStream := func(of func(request) string) answer {
		return func(s *fakeStreamable, own chan<- string, m request) []string {
			if s.calls == 20 {
				own <- of(m)
			}
			return right(m)
		}
	}
	silent := func(s *fakeStreamable, _ chan<- string, m request) []string {
		if s.calls == 20 {
			return nil
		}
		return right(m)
	}
	toOthers := func(s *fakeStreamable, own chan<- string, m request) []string {
		for _, other := range s.sessions {
			if s.calls == 20 && other != own {
				other <- strings.Replace(progressOf(m), "progress\"", "message\"", 1)
			}
		}
		return right(m)
	}
	for name, c := range map[string]struct {
		call      answer
		want, may load.Fault
	}{
		"AnswerInAnotherResponse":   {misplace(resultOf), load.Misplaced, load.Duplicated},
		"ProgressInAnotherResponse": {misplace(progressOf), load.Misplaced, load.StrayProgress},
		"RequestInAnotherResponse":  {misplace(asked), load.Misplaced, load.Misplaced},
		"AnswerOnOwnStream":         {onOwnStream(resultOf), load.Misplaced, load.Duplicated},
		"RequestOnOwnStream":        {onOwnStream(asked), load.Misplaced, load.Misplaced},
		"NoAnswer":                  {silent, load.Lost, load.Lost},
		"AnotherSession":            {toOthers, load.Crossed, load.Crossed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &fakeStreamable{call: c.call}
			opts := quick()
			opts.Transport, opts.InFlight, opts.Settle = load.Streamable, 1, 100*time.Millisecond
			r := mustRun(t, s.at(t), opts)
			for kind, count := range r.Faults {
				if f := load.Fault(kind); f == c.want && count == 0 || f != c.want && f != c.may && count > 0 {
					t.Errorf("%s = %d; all: %v\n%q", f, count, r.Faults, r.Evidence)
				}
			}
		})
	}
}
