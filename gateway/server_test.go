package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// server is a test server: an upstream.Upstream whose sessions answer by a function
// and record their messages.
type server struct {
	// dial decides the result of the nth start, from 1; nil: it works at once.
	dial func(ctx context.Context, n int) error
	// born is called with each session when it starts; nil: nothing is.
	born func(s *serverSession)
	// handle answers one message. If it is nil or returns false, the session gives
	// the standard answer.
	handle func(s *serverSession, m *jsonrpc.Message) bool
	// deaf reports whether a session refuses messages; nil: none does.
	deaf func(s *serverSession) bool
	// refusal is the error of a deaf session; nil: jsonrpc.ErrClosed.
	refusal error
	// capabilities are declared in the initialize result. "" is {}.
	capabilities string

	// identity and command are those of Identity; "" is the same for all.
	identity, command string
	// place is where the server runs, and anyFolder where it runs in an empty folder.
	place, anyFolder string
	// closing is the duration of the end of a session.
	closing time.Duration

	excuse atomic.Pointer[string] // see Excuse; nil: there is none

	// settle lets handle wait; nil unless a test makes it.
	settle chan struct{}

	mu       sync.Mutex
	dials    int
	sessions []*serverSession
	folder   string
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

// inSession is a handle for the nth session alone.
func inSession(n int, handle func(*serverSession, *jsonrpc.Message) bool) func(*serverSession, *jsonrpc.Message) bool {
	return func(s *serverSession, m *jsonrpc.Message) bool { return s.n == n && handle(s, m) }
}

// saying is a handle for messages whose params have this text.
func saying(text string, handle func(*serverSession, *jsonrpc.Message) bool) func(*serverSession, *jsonrpc.Message) bool {
	return func(s *serverSession, m *jsonrpc.Message) bool {
		return strings.Contains(string(m.Params()), text) && handle(s, m)
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

func (u *server) Excuse() string {
	if excuse := u.excuse.Load(); excuse != nil {
		return *excuse
	}
	return ""
}

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
	if u.born != nil {
		u.born(s)
	}
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
func (u *server) open() int { return u.sessionsThat(func(s *serverSession) bool { return !s.over() }) }

// alive returns the number of sessions whose Close has not returned.
func (u *server) alive() int {
	return u.sessionsThat(func(s *serverSession) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.closed
	})
}

func (u *server) sessionsThat(are func(*serverSession) bool) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.sessions {
		if are(s) {
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
	got    []*jsonrpc.Message
	closed bool // Close has returned
}

func (s *serverSession) Send(msg []byte) error {
	if s.over() || s.server.deaf != nil && s.server.deaf(s) {
		return cmp.Or(s.server.refusal, jsonrpc.ErrClosed)
	}
	m, err := jsonrpc.Parse(bytes.Clone(msg))
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.got = append(s.got, m)
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

// messages returns what the session has received.
func (s *serverSession) messages() []*jsonrpc.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// methods returns the methods of the messages that the session got.
func (s *serverSession) methods() (all []string) {
	for _, m := range s.messages() {
		all = append(all, m.Method)
	}
	return all
}

// texts returns what the session has received, byte for byte.
func (s *serverSession) texts() (all []string) {
	for _, m := range s.messages() {
		all = append(all, string(m.Raw()))
	}
	return all
}

// last returns the last message that the session got.
func (s *serverSession) last() string {
	all := s.texts()
	return all[len(all)-1]
}

// count returns the number of messages with that method that the session got.
func (s *serverSession) count(method string) int {
	return len(slices.DeleteFunc(s.methods(), func(m string) bool { return m != method }))
}

// message returns the first message with that method, as the session got it.
func (s *serverSession) message(t testing.TB, method string) *jsonrpc.Message {
	t.Helper()
	all := s.messages()
	i := slices.IndexFunc(all, func(m *jsonrpc.Message) bool { return m.Method == method })
	if i < 0 {
		t.Fatalf("session %d got no %s", s.n, method)
	}
	return all[i]
}

func (s *serverSession) wantMethods(t testing.TB, want ...string) {
	t.Helper()
	equal(t, fmt.Sprintf("session %d", s.n), s.methods(), want)
}

// wantSent expects exactly these responses among the messages that the session got.
func (s *serverSession) wantSent(t testing.TB, want ...string) {
	t.Helper()
	var responses []string
	for _, m := range s.messages() {
		if m.Kind == jsonrpc.Response {
			responses = append(responses, string(m.Raw()))
		}
	}
	equal(t, fmt.Sprintf("responses that session %d got", s.n), responses, want)
}

// Identity is that of all servers of a test: what one of them says is remembered of the next.
func (u *server) Identity() remember.Identity {
	return remember.Identity{Server: cmp.Or(u.identity, "the server of the test"), Place: u.place, AnyFolder: u.anyFolder, Command: u.command}
}

// InEmptyFolder is the same server.
func (u *server) InEmptyFolder(dir string) upstream.Upstream {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.folder = dir
	return u
}

// lastFolder returns the last folder of InEmptyFolder.
func (u *server) lastFolder() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.folder
}
