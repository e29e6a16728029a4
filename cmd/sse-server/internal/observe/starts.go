package observe

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Starts keeps what servers write while they start out of a log that is on the terminal of a person: a check there says
// in a few lines how each start ended, and a server that fails would write its own around them, at each try. It is safe
// for concurrent use. A nil Starts keeps nothing out.
//
//	a check begins     lines about the server's processes are held
//	its start is late  they are written, and so are later ones: it may wait for a person, and say so in them
//	it has started     they are written, and so are later ones
//	it has failed      they are dropped, and so are later ones until it has a session
//
// Errors are written at once: they are of sse-server, such as about a process that cannot be killed. A log at level
// debug has all lines at once.
type Starts struct {
	mu sync.Mutex // guards what follows
	of map[string]*startLines
}

// startLines is what is kept of the lines about a server.
type startLines struct {
	hasFailed bool
	held      []heldLine // while the check goes on
}

// heldLine is a line, and the handler that writes it.
type heldLine struct {
	to     slog.Handler
	record slog.Record
}

// maxHeld is how many lines about a server are held: the last ones.
const maxHeld = 200

// hasSession are the messages about a server that has started for a client.
var hasSession = []string{"session started", "session taken", "shared session started"}

// NewStarts returns a Starts that keeps nothing out yet.
func NewStarts() *Starts { return &Starts{of: map[string]*startLines{}} }

// Logger returns a logger that writes to log what Starts does not keep out.
func (s *Starts) Logger(log *slog.Logger) *slog.Logger {
	if s == nil {
		return log
	}
	return slog.New(&startHandler{Handler: log.Handler(), starts: s})
}

// Begin says that a check starts the server.
func (s *Starts) Begin(server string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[server] = &startLines{}
}

// Late says that the check of a server takes longer than people wait without a word.
func (s *Starts) Late(server string) { s.End(server, false) }

// End says how a check has ended. The caller then says why a server has failed. End does nothing after Late or Forget.
func (s *Starts) End(server string, hasFailed bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.of[server] == nil:
	case hasFailed:
		s.of[server] = &startLines{hasFailed: true}
	default:
		s.release(server)
	}
}

// Forget ends what is kept out, as servers may be others now.
func (s *Starts) Forget() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for server := range s.of {
		s.release(server)
	}
}

// release writes what is held of a server, and ends what is kept out. The caller has mu.
func (s *Starts) release(server string) {
	for _, line := range s.of[server].held {
		_ = line.to.Handle(context.Background(), line.record) // it writes to memory
	}
	delete(s.of, server)
}

// keep reports whether a line is held or dropped.
func (s *Starts) keep(h *startHandler, r slog.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.of[h.server]
	switch {
	case lines == nil || r.Level >= slog.LevelError:
		return false
	case lines.hasFailed && slices.Contains(hasSession, r.Message):
		delete(s.of, h.server)
		return false
	case !h.ofProcess && !strings.HasPrefix(r.Message, "warm server "):
		return false
	case !lines.hasFailed:
		if len(lines.held) == maxHeld {
			lines.held = slices.Delete(lines.held, 0, 1)
		}
		lines.held = append(lines.held, heldLine{h.Handler, r.Clone()})
	}
	return true
}

// startHandler is the slog.Handler of the logger. Its attributes say which server lines are about, and whether they are
// about a process of it.
type startHandler struct {
	slog.Handler
	starts    *Starts
	server    string
	ofProcess bool
}

// Handle writes the line, unless it is kept out.
func (h *startHandler) Handle(ctx context.Context, r slog.Record) error {
	if !h.Enabled(ctx, slog.LevelDebug) && h.starts.keep(h, r) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler with more attributes.
func (h *startHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.Handler = h.Handler.WithAttrs(attrs)
	for _, attr := range attrs {
		switch attr.Key {
		case "server":
			next.server = attr.Value.String()
		case "pid":
			next.ofProcess = true
		}
	}
	return &next
}

// WithGroup returns a handler with a group.
func (h *startHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.Handler = h.Handler.WithGroup(name)
	return &next
}
