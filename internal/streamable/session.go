package streamable

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/idle"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// streamSession is what clients call a session: a connection, and the streams that its messages
// go to.
type streamSession struct {
	h *Handler
	c connstate.ForTransport

	// release undoes httpcheck.Adopt, and stopExpiry the timer of expire. The handler calls both when
	// it forgets the session.
	release    func()
	stopExpiry func()

	// use counts the HTTP requests of the session. It is over when the session is. Guarded by Handler.mu.
	use idle.Use

	// kept are the events that a client may come back for, the oldest first. Guarded by store.mu.
	kept      []*storedEvent
	keptBytes int

	// mu guards what follows, and the streams.
	mu sync.Mutex
	// calls are the streams of the unanswered requests, by the ids under which these go on.
	calls   map[jsonrpc.ID]*stream
	doubles doubles
	// streams are those that a client can resume, by their numbers, and the session's own, which is
	// 0. last is the number of the newest one, and ended counts those that have ended since
	// tidyLocked.
	streams map[int64]*stream
	last    int64
	ended   int
	// version is the protocol version that was negotiated; empty if it is unknown.
	version string
	state   sessionState
	// toldVersion says that the log has that the client's header names another version.
	toldVersion bool
	// earlier is the last number, of streams and of events in the session's own stream, that a
	// session before it with the same id may have used.
	earlier int64
}

// sessionState is how a session was opened until its client uses it, and whether it is over. It decides how long the
// session may be idle.
//
//	state               since                                          may be idle for    saw          end
//	openedByInitialize  initialize has opened it                       unusedTimeout      sessionUsed  sessionOver
//	openedAlone         a request without initialize has opened it     aloneTimeout       sessionUsed  sessionOver
//	sessionUsed         the client has used its id, or comes back to   SessionTimeout                  sessionOver
//	                    a session of before
//	sessionOver         the connection is closed
//
// Where a cell is empty, the state stays. No session may be idle for longer than Options.SessionTimeout.
type sessionState uint8

const (
	openedByInitialize sessionState = iota
	openedAlone
	sessionUsed
	sessionOver
)

const (
	// maxStanding bounds the GETs that are open for a session's own stream.
	maxStanding = 8
	// writtenTime is how long a stream is kept that was written to its end: what a client
	// that is cut has not read of it looks written, too.
	writtenTime = time.Minute
	// tidyEvery is after how many ends of streams at least a session looks which ones it
	// need not keep.
	tidyEvery = 64
)

// deliver takes an event for the client.
func (s *streamSession) deliver(e connstate.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == sessionOver {
		return
	}
	if e.IsLate() {
		s.h.opts.Metrics.Dropped(metrics.DroppedUnknownProgress)
		return
	}
	st := s.streamOfLocked(e)
	if st == nil {
		s.h.opts.Metrics.Dropped(metrics.DroppedClientGone)
		return
	}
	if !e.Answer {
		// A client that has sent one request, and takes its answer as JSON alone, does not come for a question.
		if nobodyReads := st.number == 0 && len(st.responses) == 0; nobodyReads && s.state == openedAlone {
			if refusal := refusalOf(e.Data); refusal != nil {
				go s.c.Receive(refusal) // without the lock
				return
			}
		}
		st.putMessage(e.Data, "")
		return
	}
	delete(s.calls, e.Related)
	e.Data, e.Related = s.doubles.restore(e.Data, e.Related)
	if !st.state.isEvents() && len(st.responses) == 0 {
		s.h.opts.Metrics.Dropped(metrics.DroppedClientGone)
	}
	st.putMessage(e.Data, e.Related)
}

// refusalOf returns the client's refusal of a request of the server; nil if the message is none.
func refusalOf(message []byte) *jsonrpc.Message {
	m, err := jsonrpc.Parse(message)
	if err != nil || m.Kind != jsonrpc.Request {
		return nil
	}
	refusal, err := jsonrpc.Parse(jsonrpc.NewError(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
		"the client has sent a single request, and takes its answer alone: it can be asked nothing")))
	if err != nil {
		return nil
	}
	return refusal
}

// streamOfLocked returns the stream for an event; nil if nobody can get it. A message that
// does not say which request it came with goes to the only POST that waits, as a server on
// stdio never says it; with several, or if it never belongs to a request, to the session's own
// stream; if no client reads that, to the oldest POST.
func (s *streamSession) streamOfLocked(e connstate.Event) *stream {
	st := s.calls[e.Related]
	if e.Answer || st != nil && st.reachable() {
		return st
	}
	standing := s.standingLocked()
	oldest, several := s.waitingLocked()
	if oldest == nil || len(standing.responses) > 0 &&
		(several || len(oldest.responses) == 0 || isUnsolicited(e.Data)) {
		return standing
	}
	return oldest
}

// waitingLocked returns the oldest stream of the POSTs with requests in flight that the
// client can read, and whether there are several.
func (s *streamSession) waitingLocked() (oldest *stream, several bool) {
	for _, st := range s.calls {
		if st == oldest || !st.reachable() {
			continue
		}
		several = oldest != nil
		if oldest == nil || st.number < oldest.number {
			oldest = st
		}
	}
	return oldest, several
}

// isUnsolicited reports whether a message never belongs to a request in flight.
func isUnsolicited(message []byte) bool {
	method, _ := rawjson.MemberText(message, "method")
	_, list := mcp.ChangedList(method)
	return list || method == mcp.MethodResourceUpdated || method == mcp.MethodElicitationComplete ||
		method == mcp.MethodTaskStatus
}

func (s *streamSession) standingLocked() *stream {
	st := s.streams[0]
	if st == nil {
		st = &stream{session: s, state: eventsOpen, count: s.earlier, read: s.earlier}
		s.streams[0] = st
	}
	return st
}

// noteEndLocked notes that a stream of events has ended. Now and then it tidies.
func (s *streamSession) noteEndLocked() {
	s.ended++
	if s.ended >= max(tidyEvery, len(s.streams)/4) && s.state != sessionOver {
		s.tidyLocked()
	}
}

// tidyLocked drops the streams that are over and were written to their end a while ago,
// with their events, and those that have no events left.
func (s *streamSession) tidyLocked() {
	s.ended = 0
	for number, st := range s.streams {
		if st.isOver() && !st.written.IsZero() && time.Since(st.written) > writtenTime {
			delete(s.streams, number)
		}
	}
	kept := s.h.store.dropEndedStreams(s)
	for number, st := range s.streams {
		if st.isOver() && !kept[number] {
			delete(s.streams, number)
		}
	}
}

// openPostStream returns the stream of a POST with requests, which x writes. A request whose id is in flight gets
// another one. It fails with connstate.ErrClosed if the session is over.
func (s *streamSession) openPostStream(p *post, x *response) (*stream, error) {
	state := undecided
	if !x.out.CanStream() {
		state = jsonAlone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == sessionOver {
		return nil, connstate.ErrClosed
	}
	s.last++
	st := &stream{session: s, number: s.last, state: state, open: len(p.ids), batch: p.batch,
		asked: slices.Clone(p.ids), repeats: s.h.repeats(p)}
	st.attach(x)
	for i, m := range p.messages {
		if m.Kind != jsonrpc.Request {
			continue
		}
		if s.calls[m.ID] != nil {
			m = s.doubles.giveOtherID(m)
			p.messages[i] = m
		}
		s.calls[m.ID] = st
	}
	return st, nil
}

// releaseRequest takes a request from the session, which Handler.enter has counted. With the last one it
// removes the connection if that is over.
func (s *streamSession) releaseRequest() {
	s.h.mu.Lock()
	last := s.h.idle.releaseRequest(s)
	s.h.mu.Unlock()
	if last {
		s.h.remove(s)
	}
}

// endStreams ends all streams, because the connection is closed: requests in flight get an
// error.
func (s *streamSession) endStreams() {
	s.mu.Lock()
	s.state = sessionOver
	for id, st := range s.calls {
		delete(s.calls, id)
		lost := jsonrpc.NewError(id, jsonrpc.ReasonError("the session was closed", "closed", !s.c.Committed(id)))
		st.putMessage(s.doubles.restore(lost, id))
	}
	for _, st := range s.streams {
		st.markEnd()
	}
	s.mu.Unlock()
	s.h.mu.Lock()
	unused := s.use.End()
	s.h.mu.Unlock()
	if unused {
		s.h.remove(s)
	}
}

const (
	// unusedTimeout is the longest that a session may live whose client has not used its id.
	unusedTimeout = time.Minute
	// aloneTimeout is unusedTimeout for one that a request without initialize has opened: its
	// client has most likely no more to ask, such as a script that calls a tool by curl.
	aloneTimeout = 2 * time.Second
)

// expire closes a session that is idle, and returns when to look again.
func (s *streamSession) expire() time.Duration {
	s.h.mu.Lock()
	_, left := s.idleLocked()
	s.h.mu.Unlock()
	if left <= 0 {
		s.c.Close(connstate.ClosedIdle)
	}
	return left
}

// idleLocked returns how long the client has not used the session, and how long it may go on so.
// The caller holds Handler.mu.
func (s *streamSession) idleLocked() (idle, left time.Duration) {
	idle = min(s.c.Idle(), s.use.Idle())
	allowed, _ := s.allowed()
	return idle, allowed - idle
}

// allowed returns how long the session may be idle, and whether the client has used it since it
// was opened.
func (s *streamSession) allowed() (timeout time.Duration, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	timeout = s.h.opts.SessionTimeout
	switch s.state {
	case openedByInitialize:
		return min(timeout, unusedTimeout), false
	case openedAlone:
		return min(timeout, aloneTimeout), false
	}
	return timeout, true
}

// saw notes that the client has used the session's id, and the version that it names.
func (s *streamSession) saw(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOver {
		s.state = sessionUsed
	}
	if s.version == "" && mcp.HasInitialize(version) {
		s.version = version
	}
	if version != "" && s.version != "" && version != s.version && !s.toldVersion {
		s.toldVersion = true
		s.h.opts.Logger.Info("client sends another version than its session has: it does not matter", "connectionId",
			s.c.ShortID(), "version", clip.Long(version), "session", s.version)
	}
}

// negotiated notes the answer to initialize.
func (s *streamSession) negotiated(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

func (s *streamSession) speaks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.version, versionAssumed)
}
