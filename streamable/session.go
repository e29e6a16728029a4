package streamable

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/deadline"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// session is one client's session: a connection, and the streams that its messages go to.
type session struct {
	h      *Handler
	c      *connstate.Connection
	expiry deadline.Entry[*session] // guarded by Handler.mu

	mu      sync.Mutex // guards what follows, and the streams
	calls   map[jsonrpc.ID]*stream
	streams map[int64]*stream // those that a client can resume, and the session's own
	last    int64             // number of a stream
	version string            // that was negotiated; empty if unknown
	serving int               // HTTP requests
	known   bool              // the client has used the session since it was opened
	over    bool
}

const (
	// maxStanding bounds the GETs that are open for a session's own stream.
	maxStanding = 8
	// maxResumable bounds the streams of a session that are over and can be resumed.
	maxResumable = 64
)

// deliver gives an event of the connection to the stream that it belongs to.
func (s *session) deliver(e connstate.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	st := s.streamOfLocked(e)
	if st == nil {
		s.h.opts.Metrics.Dropped(metrics.DroppedClientGone)
		return
	}
	if e.Answer {
		delete(s.calls, e.Related)
		if !st.reachable() {
			s.h.opts.Metrics.Dropped(metrics.DroppedClientGone)
		}
	}
	st.put(e.Data, e.Answer)
}

// streamOfLocked returns the stream for an event; nil if nobody can get it.
func (s *session) streamOfLocked(e connstate.Event) *stream {
	if e.Answer {
		return s.calls[e.Related]
	}
	if st := s.calls[e.Related]; st != nil && st.reachable() {
		return st
	}
	standing := s.standingLocked()
	if len(standing.responses) > 0 || isUnsolicited(e.Data) {
		if st := s.onlyStreamLocked(); st != nil && !isUnsolicited(e.Data) {
			return st
		}
		return standing
	}
	if st := s.oldestStreamLocked(); st != nil {
		return st
	}
	return standing
}

// isUnsolicited reports whether a message never belongs to a request in flight.
func isUnsolicited(message []byte) bool {
	raw, _ := jsonrpc.Member(message, "method")
	method, _ := jsonrpc.Text(raw)
	_, list := mcp.ChangedList(method)
	return list || method == mcp.MethodResourceUpdated || method == mcp.MethodElicitationComplete || method == mcp.MethodTaskStatus
}

// onlyStreamLocked returns the stream of the only POST with requests in flight; nil if
// there are several, or none. What the server sends meanwhile comes from them: a server on
// stdio does not say of which.
func (s *session) onlyStreamLocked() (only *stream) {
	for _, st := range s.calls {
		if only != nil && st != only {
			return nil
		}
		only = st
	}
	if only != nil && !only.reachable() {
		return nil
	}
	return only
}

// oldestStreamLocked returns the stream of the oldest POST with requests in flight that
// the client can read.
func (s *session) oldestStreamLocked() (oldest *stream) {
	for _, st := range s.calls {
		if st.reachable() && (oldest == nil || st.number < oldest.number) {
			oldest = st
		}
	}
	return oldest
}

// standingLocked returns the session's own stream.
func (s *session) standingLocked() *stream {
	st := s.streams[0]
	if st == nil {
		st = &stream{session: s, begun: true}
		s.addStreamLocked(st)
	}
	return st
}

// addStreamLocked adds a stream that the client can resume, and drops one that it no
// longer can if there are too many.
func (s *session) addStreamLocked(st *stream) {
	if s.streams == nil {
		s.streams = make(map[int64]*stream)
	}
	s.streams[st.number] = st
	if len(s.streams) <= maxResumable {
		return
	}
	oldest := st
	for _, other := range s.streams {
		if other.ended && len(other.responses) == 0 && other.number < oldest.number {
			oldest = other
		}
	}
	if oldest != st {
		delete(s.streams, oldest.number)
	}
}

// begin returns the stream of a POST with these requests, which out writes. It fails with
// errInFlight, or with connstate.ErrClosed if the session is over.
func (s *session) begin(ids []jsonrpc.ID, batch bool, out *response) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, connstate.ErrClosed
	}
	for i, id := range ids {
		if _, taken := s.calls[id]; taken || slices.Contains(ids[:i], id) {
			return nil, errInFlight
		}
	}
	s.last++
	st := &stream{session: s, number: s.last, open: len(ids), batch: batch}
	st.queue, st.responses = st.event[:0], st.writer[:0]
	st.attach(out)
	if s.calls == nil {
		s.calls = make(map[jsonrpc.ID]*stream)
	}
	for _, id := range ids {
		s.calls[id] = st
	}
	return st, nil
}

// errInFlight reports a request whose id another one has that is not answered.
var errInFlight = errors.New("a request with this id is in flight: ids must be unique in a session")

// enter counts an HTTP request of the session; the caller must call leave.
func (s *session) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving++
}

// leave removes the connection when it is over, with the last request.
func (s *session) leave() {
	s.mu.Lock()
	s.serving--
	last := s.over && s.serving == 0
	s.mu.Unlock()
	if last {
		s.h.remove(s)
	}
}

// end ends all streams, because the connection is closed: requests in flight get an
// error.
func (s *session) end() {
	s.mu.Lock()
	s.over = true
	for id, st := range s.calls {
		delete(s.calls, id)
		st.put(jsonrpc.NewError(id, jsonrpc.ReasonError("the session was closed", "closed", true)), true)
	}
	for _, st := range s.streams {
		st.end()
	}
	last := s.serving == 0
	s.mu.Unlock()
	s.h.opts.Store.Forget(s.c.ID())
	if last {
		s.h.remove(s)
	}
}

// idle returns how long the client has not used the session.
func (s *session) idle() time.Duration {
	s.mu.Lock()
	serving := s.serving
	s.mu.Unlock()
	if serving > 0 {
		return 0
	}
	return s.c.Idle()
}

// saw notes that the client has used the session's id, and the version that it names.
func (s *session) saw(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = true
	if s.version == "" {
		s.version = version
	}
}

// negotiated notes the answer to initialize.
func (s *session) negotiated(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// speaks returns the version of the session's client.
func (s *session) speaks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version == "" {
		return versionAssumed
	}
	return s.version
}
