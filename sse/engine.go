package sse

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	r3 "github.com/r3labs/sse/v2"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
)

// engineBuffer is the largest number of events of one stream that the library
// holds. Its buffer has that many places, so publishing never finds it full.
const engineBuffer = 16

// gatherBytes bounds what one write gathers, in bytes.
const gatherBytes = 32 << 10

// engine drives one stream for each connection through r3labs/sse/v2 v2.10.0, in the only way that neither
// leaks nor hangs. Each line has a fault of the library, the remedy here, and the test that fails without it:
//
//   - RemoveStream leaves the goroutine of a subscriber waiting for ever: a stream ends by cancelling the context
//     of its request; RemoveStream comes after ServeHTTP has returned, and Server.Close never.
//     TestEveryEndLeavesNothing
//   - ServeHTTP hangs if RemoveStream comes while it begins: the goroutine that serves a stream creates and
//     removes it. TestEveryEndLeavesNothing
//   - Publish waits without a bound, and TryPublish drops what does not fit, for healthy clients too: at most
//     engineBuffer events are in the library, and the rest wait in the connection's outbox. TestNothingIsLostUnderLoad
//   - a write to a stalled client has no deadline: each has one of ours, and the end of the stream moves it into
//     the past. TestStalledClientIsClosedByTheWriteDeadline
//   - errors of writes are ignored: our ResponseWriter closes the connection at the first, and writes nothing
//     more. TestFirstWriteErrorEndsTheStream
//   - a stream has 1024 places, 10.8 KiB: engineBuffer places, 1.2 KiB. TestLibraryHoldsLittle
//   - AutoReplay keeps every event for ever, and AutoStream makes and removes streams on its own: both are
//     off. TestLibraryHoldsLittle
//   - an event takes four writes and a flush: our ResponseWriter gathers what follows at once, up to engineBuffer
//     events or gatherBytes. TestEventsShareAWrite
//   - an event without data ends ServeHTTP and locks up the stream: it becomes a comment.
//     TestNothingEmptyReachesTheLibrary
//   - an event without an id gets an empty one, which makes a reader forget where it was: all but comments have
//     one. TestNothingIsLostUnderLoad
//   - data that begins with a colon becomes a comment, and its line breaks are written: httpanswer.Line.
//     TestDataCannotBecomeFields
//   - events before the subscriber are dropped: the ResponseWriter writes endpoint into the first Flush, and only
//     then takes events. TestStreamBytes
//   - events that wait at the end are dropped: a graceful close waits until they are written.
//     TestGracefulCloseDeliversEverything
//   - ?stream= of a client chooses the stream, and its Last-Event-ID may be refused: the library gets a request of
//     ours, without headers. TestClientCannotSteerTheLibrary
//   - the head has Connection, which HTTP/2 forbids, and lets proxies change the stream: WriteHeader
//     sets ours. TestStreamHeaders
//
// Each row ends with its test, which TestEachTrapHasATest checks.
type engine struct {
	server       *r3.Server
	writeTimeout time.Duration
	buffers      sync.Pool // of *[]byte
}

func newEngine(writeTimeout time.Duration) *engine {
	server := r3.New()
	server.BufferSize = engineBuffer
	server.AutoReplay = false
	server.AutoStream = false
	return &engine{
		server: server, writeTimeout: writeTimeout,
		buffers: sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }},
	}
}

// serve writes a connection's events until it is closed or the client is gone.
// The endpoint event comes first, with the head.
func (e *engine) serve(w http.ResponseWriter, r *http.Request, c connstate.ForTransport, endpoint string) {
	e.server.CreateStream(c.ID())
	defer e.server.RemoveStream(c.ID()) // after ServeHTTP: the subscriber is gone by then

	s, inner, stop := e.newStream(w, r, c, endpoint)
	defer stop()
	e.server.ServeHTTP(s, inner)
}

// newStream returns the arguments for the library: a stream, and a request that
// ends when the connection is closed or the client is gone. stop releases the
// request.
func (e *engine) newStream(w http.ResponseWriter, r *http.Request, c connstate.ForTransport,
	endpoint string) (s *stream, inner *http.Request, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s = &stream{engine: e, c: c, w: w, endpoint: endpoint, lastID: 1}
	s.deadline = httpanswer.NewDeadline(w, r, e.writeTimeout)
	end := func() {
		s.deadline.Expire() // a stream that ends must not wait for a stalled client; before ServeHTTP can return
		cancel()
	}
	c.OnClose(end)
	// Not c.Close: net/http cancels the context when a write fails, and then the
	// reason is the write's.
	release := context.AfterFunc(r.Context(), end)
	inner = &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/sse", RawQuery: "stream=" + c.ID()}}
	return s, inner.WithContext(ctx), func() {
		release()
		cancel()
	}
}

// stream is the ResponseWriter that the library writes one connection's events to.
// All methods but take run on the goroutine of the GET.
type stream struct {
	engine *engine
	c      connstate.ForTransport
	w      http.ResponseWriter

	endpoint string
	buf      *[]byte // written by the library, not yet by us; nil: nothing
	begun    bool    // the head has been written
	err      error   // the first write error: all that follows is swallowed
	written  int64   // events that left the library; those from free on are in buf

	// The sizes of the events that the library has, by their number; take writes behind
	// taken, Flush reads behind written.
	sizes  [engineBuffer]int
	taken  atomic.Int64
	free   atomic.Int64 // events whose place may be used again
	lastID int64        // guarded by the outbox, which calls acceptEvent

	deadline *httpanswer.Deadline
}

// acceptEvent gives one event to the library if there is room. The outbox calls it,
// one call at a time.
func (s *stream) acceptEvent(ev connstate.Event) bool {
	taken := s.taken.Load()
	if taken-s.free.Load() >= engineBuffer {
		return false
	}
	out := &r3.Event{}
	if len(ev.Data) == 0 { // not an empty comment: the library would end the stream silently, and lock up
		out.Comment = []byte(cmp.Or(ev.Name, heartbeatComment))
	} else {
		s.lastID++
		out.ID = strconv.AppendInt(nil, s.lastID, 10)
		out.Event = []byte(ev.Name)
		out.Data = httpanswer.Line(ev.Data) // the library would write line breaks and comments as they are
		if ev.Retry > 0 {
			out.Retry = strconv.AppendInt(nil, int64(ev.Retry), 10)
		}
	}
	s.sizes[taken%engineBuffer] = ev.Size()
	s.taken.Store(taken + 1) // before publishing: Flush compares with it
	return s.engine.server.TryPublish(s.c.ID(), out)
}

// Header returns a header for the library to change; WriteHeader sets the real one.
func (s *stream) Header() http.Header { return s.w.Header() }

// WriteHeader sets the head of the stream; it is sent with the first Flush.
func (s *stream) WriteHeader(status int) {
	header := s.w.Header()
	httpanswer.SetStreamHeader(header)
	header.Set("X-Connection-ID", s.c.ID())
	header.Del("Connection") // HTTP/2 forbids it, HTTP/1.1 does not need it
	s.w.WriteHeader(status)
}

// Write gathers what the library writes. An idle stream has no buffer: there are many.
func (s *stream) Write(p []byte) (int, error) {
	if s.err == nil {
		if s.buf == nil {
			s.buf = s.engine.buffers.Get().(*[]byte)
		}
		*s.buf = append(*s.buf, p...)
	}
	return len(p), nil // the library ignores errors: it is stopped by the context
}

// Flush writes what Write has gathered. The library calls it once for the head and
// then after each event. While more events are on their way, Flush holds the write
// back: one write and one flush serve them all.
func (s *stream) Flush() {
	if !s.begun {
		s.begun = true
		_, _ = s.Write([]byte("id: 1\nevent: endpoint\ndata: " + s.endpoint + "\n\n")) // never fails
		s.writeOut()
		if s.err == nil {
			s.c.SawFirstByte()
			s.c.StartAnnounceDelay()
			s.c.Attach(s.acceptEvent)
		}
		return
	}
	s.written++
	if s.err == nil && s.written-s.free.Load() < engineBuffer && len(*s.buf) < gatherBytes && s.moreFollow() {
		return
	}
	s.writeOut()
	size := 0
	for i := s.free.Load(); i < s.written; i++ {
		size += s.sizes[i%engineBuffer]
	}
	s.free.Store(s.written)
	s.c.Written(size)
}

// moreFollow reports whether more events are on their way. If not, but requests of the
// client are unanswered, it first lets other goroutines run: those that answer them may
// be about to.
func (s *stream) moreFollow() bool {
	if s.taken.Load() > s.written {
		return true
	}
	if s.c.InFlight() == 0 {
		return false
	}
	runtime.Gosched()
	return s.taken.Load() > s.written
}

func (s *stream) writeOut() {
	if s.err != nil {
		return
	}
	reason, err := s.deadline.Write(s.w, *s.buf, s.c.SawWrite)
	if cap(*s.buf) <= 2*gatherBytes {
		*s.buf = (*s.buf)[:0]
		s.engine.buffers.Put(s.buf)
	}
	s.buf = nil
	s.err = err
	if reason != "" {
		s.c.Close(reason)
	}
}

var (
	_ http.ResponseWriter = (*stream)(nil)
	_ http.Flusher        = (*stream)(nil)
)
