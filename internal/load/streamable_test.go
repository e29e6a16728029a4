package load_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/load"
)

// streamableServer serves a fakeServer over Streamable HTTP: each POST is a link of its
// own, and what comes for it is the response.
type streamableServer struct {
	*fakeServer
	events bool // responses are streams

	sessions map[string]bool // those that are open; guarded by fakeServer.mu
}

func (s *streamableServer) serve(t *testing.T) *streamableServer {
	t.Helper()
	s.sessions = make(map[string]bool)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL + "/mcp"
	return s
}

func (s *streamableServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&req) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.Header.Get("Mcp-Session-Id")
	if req.Method == "initialize" && id == "" {
		s.opened++
		id = fmt.Sprint("session-", s.opened)
		s.sessions[id] = true
		w.Header().Set("Mcp-Session-Id", id)
	}
	if !s.sessions[id] {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodDelete {
		delete(s.sessions, id)
		return
	}
	l := &link{out: make(chan string, 10)}
	if status := s.handleLocked(l, req); status != http.StatusAccepted {
		http.Error(w, "refused", status)
		return
	}
	s.respond(w, l)
}

// respond writes what has come for a POST.
func (s *streamableServer) respond(w http.ResponseWriter, l *link) {
	if len(l.out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if s.events {
		w.Header().Set("Content-Type", "text/event-stream")
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	for len(l.out) > 0 {
		block := <-l.out
		if !s.events {
			_, block, _ = strings.Cut(block, "data: ")
		}
		fmt.Fprint(w, block)
	}
}

func TestStreamableServerIsClean(t *testing.T) {
	for name, c := range map[string]struct {
		events bool
		change func(*load.Options)
	}{
		"JSON":     {false, func(*load.Options) {}},
		"Events":   {true, func(*load.Options) {}},
		"Progress": {true, func(o *load.Options) { o.ProgressTool, o.ProgressArgument = "progress", "message" }},
		"Large":    {false, func(o *load.Options) { o.Payload = 20_000 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&streamableServer{fakeServer: &fakeServer{}, events: c.events}).serve(t)
			opts := quick()
			opts.Streamable = true
			c.change(&opts)
			r := mustRun(t, s.url, opts)
			if r.Verdict() != load.Clean || r.Answered != 160 || opts.ProgressTool != "" && r.Progress != 80 {
				t.Errorf("report = %+v, want 160 right answers, and 80 progress if it is asked for", r)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.sessions) > 0 || s.opened != 9 {
				t.Errorf("%d of %d sessions are left, want 0 of 9", len(s.sessions), s.opened)
			}
		})
	}
}

func TestStreamableFaultsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		call func(s *fakeServer, from *link, r request)
		want load.Fault
	}{
		"Crossed": {func(s *fakeServer, from *link, r request) {
			if s.held = append(s.held, heldCall{from, r}); len(s.held) > 1 {
				s.text(from, r.ID, s.held[0].secret())
				return
			}
			s.echo(from, r)
		}, load.Crossed},
		"Duplicated": {func(s *fakeServer, from *link, r request) { s.echo(from, r); s.echo(from, r) },
			load.Duplicated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&streamableServer{fakeServer: &fakeServer{call: c.call}, events: true}).serve(t)
			opts := load.Options{Streamable: true, Clients: 1, Calls: 2, InFlight: 1, Timeout: quick().Timeout, Settle: 1}
			if r := mustRun(t, s.url, opts); r.Faults[c.want] == 0 {
				t.Errorf("report = %+v, want the fault counted", r)
			}
		})
	}
}

func TestRefusedSession(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	opts := quick()
	opts.Streamable = true
	if _, err := load.Run(t.Context(), srv.URL+"/mcp", opts); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error = %v, want the refusal of initialize", err)
	}
}
