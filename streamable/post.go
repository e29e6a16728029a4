package streamable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// post is a POST that has been read.
type post struct {
	w         http.ResponseWriter
	r         *http.Request
	principal string
	stream    bool   // the client names a stream before JSON
	session   string // the header
	version   string // the header
	messages  []*jsonrpc.Message
	batch     bool

	ids        []jsonrpc.ID     // of the requests
	first      *jsonrpc.Message // request; nil: there is none
	initialize bool             // a request is initialize
}

// servePost is POST /mcp.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request, principal string) {
	stream, refusal := checkAccept(r)
	if refusal == nil {
		refusal = checkSingle(r)
	}
	if refusal != nil {
		refusal.Unread = true
		h.RefuseMessage(w, r, refusal)
		return
	}
	id := r.Header.Get(headerSession)
	addr := h.ClientAddr(r)
	hold := func(n, held int) error { return h.registry.HoldBody(principal, addr, n, held) }
	release := func(n int) { h.registry.ReleaseBody(principal, addr, n) }
	if c, ok := h.registry.Find(id); ok && c.Client().Principal == principal {
		hold, release = c.HoldBody, c.ReleaseBody
	}
	body, refusal := h.ReadBody(w, r, hold)
	defer release(body.Held)
	p := &post{w: w, r: r, principal: principal, stream: stream, session: id, version: r.Header.Get(front.HeaderVersion)}
	if refusal == nil {
		refusal = p.parse(body.Bytes)
	}
	switch {
	case refusal != nil:
	case !p.speaksModern():
		refusal = h.serveLegacy(p)
	case p.batch:
		refusal = noBatches(mcp.VersionStateless)
	default:
		h.modern.ServePOST(w, r, principal, p.messages[0], stream)
	}
	if refusal != nil {
		h.RefuseMessage(w, r, refusal)
	}
}

// serveLegacy serves a POST of a client with sessions, or returns why not.
func (h *Handler) serveLegacy(p *post) *front.Refusal {
	if !p.initialize || p.session != "" {
		if refusal := checkVersion(p.version); refusal != nil {
			return refusal
		}
	}
	if p.initialize && p.batch {
		return front.Refused(http.StatusBadRequest, metrics.PostInvalidRequest, "initialize must not be in a batch")
	}
	if p.session == "" && !p.initialize {
		if done, refusal := h.serveAlone(p); done || refusal != nil {
			return refusal
		}
	}
	if refusal := p.checkBatch(); refusal != nil {
		return refusal
	}
	ctx, status, err := h.Passed(p.r, p.principal)
	if err != nil {
		return front.Refused(status, metrics.RejectedBadRequest, "%v", err)
	}
	for _, m := range p.messages {
		m.Context = ctx
	}
	s, opened := h.sessionOf(p, ctx)
	if s == nil {
		return nil
	}
	defer s.leave()
	if !opened {
		s.saw(p.version)
		return h.serveIn(s, p, false)
	}
	if !p.initialize {
		s.negotiated(p.version)
	}
	refusal := h.serveIn(s, p, true)
	if refusal != nil {
		s.c.Close(connstate.ClosedClient)
	}
	return refusal
}

// checkBatch refuses an array that its version does not have, and one with an id twice.
func (p *post) checkBatch() *front.Refusal {
	if !p.batch {
		return nil
	}
	if p.version != "" && p.version != versionAssumed {
		return noBatches(p.version)
	}
	ids := slices.Sorted(slices.Values(p.ids))
	if len(slices.Compact(ids)) < len(p.ids) {
		return front.Refused(http.StatusBadRequest, metrics.PostInvalidRequest, "%v", errInFlight)
	}
	return nil
}

func noBatches(version string) *front.Refusal {
	return front.Refused(http.StatusBadRequest, metrics.PostInvalidRequest, "MCP %.64s has no batches: send each message by itself", version)
}

// serveAlone serves messages without a session that need none, or that get none.
func (h *Handler) serveAlone(p *post) (done bool, refusal *front.Refusal) {
	m := p.first
	switch {
	case m == nil:
		return false, noSession("", "a notification or a response needs a session: send its id as Mcp-Session-Id")
	case len(p.messages) == 1 && m.Method == mcp.MethodDiscover:
		e := jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "server/discover needs the _meta of MCP 2026-07-28; otherwise use initialize")
		refusal = front.RefusedWith(http.StatusBadRequest, metrics.RejectedBadRequest, e)
		refusal.ID = m.ID
		return false, refusal
	case h.opts.RequireInitialize:
		return false, noSession(m.ID, "initialize first, and send the Mcp-Session-Id of the response")
	case len(p.messages) == 1 && m.Method == mcp.MethodPing:
		p.w.Header()["Content-Type"] = jsonType
		_, _ = front.WriteAll(p.w, p.r, jsonrpc.NewResult(m.ID, []byte("{}")), h.opts.WriteTimeout) // a client that is gone needs no answer
		return true, nil
	}
	return false, nil
}

// noSession is the refusal of a message that needs a session, the request id if it is one.
func noSession(id jsonrpc.ID, message string) *front.Refusal {
	refusal := front.Refused(http.StatusBadRequest, metrics.PostNoSession, "%s", message)
	refusal.ID = id
	return refusal
}

// sessionOf returns the session of a POST, or a new one if it opens one; the caller must
// call leave. Without a session the POST has been answered.
func (h *Handler) sessionOf(p *post, ctx context.Context) (s *session, opened bool) {
	if p.session == "" {
		return h.open(p.w, p.r, p.principal, "", ctx), true
	}
	if s = h.find(p.session, p.principal); s != nil {
		return s, false
	}
	return h.reopen(p.w, p.r, p.principal, p.session, ctx)
}

// isOurs reports whether an id is that of a session of the principal, of which this process
// may know nothing more: it was idle, or the process is new. Without the gateway's own
// handshake there is no going on.
func (h *Handler) isOurs(id, principal string) bool {
	if c, ok := h.registry.Find(id); ok && c.Client().Transport != connstate.TransportStreamable {
		return false // it goes on there
	}
	return !h.opts.RequireInitialize && h.registry.Verify(id, principal)
}

// reopen opens a session under the id that its client has, so that the client notices
// nothing. Without a session the request has been answered.
func (h *Handler) reopen(w http.ResponseWriter, r *http.Request, principal, id string, ctx context.Context) (s *session, opened bool) {
	if !h.isOurs(id, principal) { // before the lock: whoever guesses holds up nobody
		h.refuseUnknown(w, r)
		return nil, false
	}
	h.reopening.Lock() // one of several requests at once opens it, the others find it
	defer h.reopening.Unlock()
	if s = h.find(id, principal); s != nil {
		return s, false
	}
	if _, taken := h.registry.Find(id); taken { // it is about to end, or of another transport
		h.refuseUnknown(w, r)
		return nil, false
	}
	return h.open(w, r, principal, id, ctx), true
}

// refuseUnknown answers a request for a session that is not there: 404 makes a client
// initialize again (MCP 2025-11-25, transports, session management).
func (h *Handler) refuseUnknown(w http.ResponseWriter, r *http.Request) {
	h.Refuse(w, r, http.StatusNotFound, metrics.RejectedUnknownConnection, unknownSession)
}

const unknownSession = "no such session: initialize again, without Mcp-Session-Id"

// serveIn passes the messages of a POST to a session, and writes the answers.
func (h *Handler) serveIn(s *session, p *post, opened bool) *front.Refusal {
	if p.batch && s.speaks() != versionAssumed {
		return noBatches(s.speaks())
	}
	for _, m := range p.messages {
		if err := s.c.CheckBudget(m); err != nil {
			return front.RefusedBusy(err)
		}
	}
	if len(p.ids) == 0 {
		h.receive(s, p)
		p.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	x := h.newResponse(p.w, p.r, s)
	var err error
	switch x.st, err = s.begin(p, !front.CanFlush(p.w), x); {
	case errors.Is(err, errInFlight):
		return front.Refused(http.StatusBadRequest, metrics.PostInvalidRequest, "%v", err)
	case err != nil:
		h.refuseUnknown(p.w, p.r)
		return nil
	}
	if opened {
		p.w.Header().Set(headerSession, s.c.ID())
		if p.initialize {
			x.opens = p.ids[0]
		}
	}
	if p.stream {
		x.becomeStream()
	}
	h.receive(s, p)
	x.run()
	if x.failed {
		s.c.Close(connstate.ClosedServer)
	}
	return nil
}

func (h *Handler) receive(s *session, p *post) {
	for _, m := range p.messages {
		s.c.Observe(m, p.version)
		s.c.Receive(m)
	}
}

// repeats reports whether all requests of a POST may be run twice.
func (h *Handler) repeats(p *post) bool {
	return !slices.ContainsFunc(p.messages, func(m *jsonrpc.Message) bool { return m.Kind == jsonrpc.Request && !h.opts.Repeatable(m) })
}

// maxBatch bounds the messages in an array.
const maxBatch = 100

// parse reads the messages of a body.
func (p *post) parse(body []byte) *front.Refusal {
	parts := []json.RawMessage{body}
	if p.batch = bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")); p.batch {
		var err *jsonrpc.Error
		if parts, err = jsonrpc.Split(body, maxBatch); err != nil {
			return front.RefusedWith(http.StatusBadRequest, metrics.PostInvalidRequest, err)
		}
	}
	for _, part := range parts {
		m, refusal := front.ParseMessage(part)
		if refusal != nil {
			return refusal
		}
		p.messages = append(p.messages, m)
		if m.Kind == jsonrpc.Request {
			p.ids = append(p.ids, m.ID)
			p.first = cmp.Or(p.first, m)
			p.initialize = p.initialize || m.Method == mcp.MethodInitialize
		}
	}
	return nil
}
