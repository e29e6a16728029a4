package gateway_test

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// server is a test server: an upstream.Upstream whose sessions answer by a function
// and record their messages.
type server struct {
	// dial decides the result of the nth start, from 1; nil: it works at once.
	dial func(ctx context.Context, n int) error
	// handle answers one message. If it is nil or returns false, the session gives
	// the standard answer.
	handle func(s *serverSession, m *jsonrpc.Message) bool
	// deaf reports whether a session refuses messages; nil: none does.
	deaf func(s *serverSession) bool
	// refusal is the error of a deaf session; nil: jsonrpc.ErrClosed.
	refusal error
	// capabilities are declared in the initialize result. "" is {}.
	capabilities string

	// closing is the duration of the end of a session.
	closing time.Duration

	text atomic.Bool // see WritesText

	// settle lets handle wait; nil unless a test makes it.
	settle chan struct{}

	mu       sync.Mutex
	dials    int
	sessions []*serverSession
}

// on is the handle of a server that takes one method in its own way.
func on(method string, do func(*serverSession, *jsonrpc.Message)) func(*serverSession, *jsonrpc.Message) bool {
	return func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == method {
			do(s, m)
		}
		return m.Method == method
	}
}

// late answers after a while.
func late(d time.Duration) func(*serverSession, *jsonrpc.Message) {
	return func(s *serverSession, m *jsonrpc.Message) { time.AfterFunc(d, func() { s.answer(m) }) }
}

// dies ends the session.
func dies(s *serverSession, _ *jsonrpc.Message) { s.die() }

// fails answers with an error of this code.
func fails(code int) func(*serverSession, *jsonrpc.Message) {
	return func(s *serverSession, m *jsonrpc.Message) {
		s.say(string(jsonrpc.NewError(m.ID, jsonrpc.Errorf(code, "no"))))
	}
}

func (u *server) WritesText() bool { return u.text.Load() }

func (u *server) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	u.mu.Lock()
	u.dials++
	n := u.dials
	u.mu.Unlock()
	if u.dial != nil {
		if err := u.dial(ctx, n); err != nil {
			return nil, err
		}
	}
	s := &serverSession{server: u, n: n, out: make(chan string, 4096), done: make(chan struct{})}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sessions = append(u.sessions, s)
	return s, nil
}

// starts returns the number of calls of Dial.
func (u *server) starts() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dials
}

// session returns the nth session that Dial made, from 1.
func (u *server) session(t testing.TB, n int) *serverSession {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.sessions) < n {
		t.Fatalf("%d sessions were started, want at least %d", len(u.sessions), n)
	}
	return u.sessions[n-1]
}

// open returns the number of sessions that are not over.
func (u *server) open() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for _, s := range u.sessions {
		if !s.over() {
			n++
		}
	}
	return n
}

// serverSession is one session with a server: a jsonrpc.Conn.
type serverSession struct {
	server *server
	n      int
	out    chan string
	done   chan struct{}
	end    error // set before done is closed

	mu     sync.Mutex
	got    []string
	closed bool // Close has returned
}

func (s *serverSession) Send(msg []byte) error {
	if s.over() || s.server.deaf != nil && s.server.deaf(s) {
		return cmp.Or(s.server.refusal, jsonrpc.ErrClosed)
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.got = append(s.got, string(msg))
	s.mu.Unlock()
	if s.server.handle == nil || !s.server.handle(s, m) {
		s.answer(m)
	}
	return nil
}

// answer sends the standard answer: a result for initialize, and for all other
// requests the session's number and the params.
func (s *serverSession) answer(m *jsonrpc.Message) {
	if m.Kind != jsonrpc.Request || m.Method == "hang" {
		return
	}
	result := `{"session":` + strconv.Itoa(s.n) + `,"method":"` + m.Method + `"}`
	if m.Method == "initialize" {
		capabilities := s.server.capabilities
		if capabilities == "" {
			capabilities = "{}"
		}
		result = `{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"serverInfo":{"name":"played","version":"1.0"}}`
	}
	s.say(string(jsonrpc.NewResult(m.ID, []byte(result))))
}

// say sends a message from the server.
func (s *serverSession) say(msg string) {
	select {
	case s.out <- msg:
	case <-s.done:
	}
}

// die ends the session from the server's side.
func (s *serverSession) die() { s.finish(io.EOF) }

func (s *serverSession) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = err
		close(s.done)
	}
}

func (s *serverSession) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *serverSession) Recv() ([]byte, error) {
	select {
	case msg := <-s.out:
		return []byte(msg), nil
	default:
	}
	select {
	case msg := <-s.out:
		return []byte(msg), nil
	case <-s.done:
		return nil, s.end
	}
}

func (s *serverSession) Close() error {
	s.finish(jsonrpc.ErrClosed)
	time.Sleep(s.server.closing)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// methods returns the methods of the messages that the session got.
func (s *serverSession) methods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, raw := range s.got {
		m, _ := jsonrpc.Parse([]byte(raw)) // parsed before
		all = append(all, m.Method)
	}
	return all
}

// last returns the last message that the session got.
func (s *serverSession) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[len(s.got)-1]
}

// count returns the number of messages with that method that the session got.
func (s *serverSession) count(method string) int {
	n := 0
	for _, m := range s.methods() {
		if m == method {
			n++
		}
	}
	return n
}

// message returns the first message with that method, as the session got it.
func (s *serverSession) message(t testing.TB, method string) *jsonrpc.Message {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, raw := range s.got {
		if m, _ := jsonrpc.Parse([]byte(raw)); m.Method == method {
			return m
		}
	}
	t.Fatalf("session %d got no %s", s.n, method)
	return nil
}

func (s *serverSession) wantMethods(t testing.TB, want ...string) {
	t.Helper()
	if got := s.methods(); !slices.Equal(got, want) {
		t.Errorf("session %d got %q, want %q", s.n, got, want)
	}
}

// wantSent expects exactly these responses among the messages that the session got.
func (s *serverSession) wantSent(t testing.TB, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var responses []string
	for _, raw := range s.got {
		if m, _ := jsonrpc.Parse([]byte(raw)); m.Kind == jsonrpc.Response {
			responses = append(responses, raw)
		}
	}
	if !slices.Equal(responses, want) {
		t.Errorf("session %d got the responses\n  %s\nwant\n  %s", s.n, strings.Join(responses, "\n  "), strings.Join(want, "\n  "))
	}
}

// messages returns what the session has received.
func (s *serverSession) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}
