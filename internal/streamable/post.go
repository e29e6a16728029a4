package streamable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// post is a POST that has been read.
type post struct {
	*request
	form     httpanswer.Form // of the answer
	messages []*jsonrpc.Message
	batch    bool

	ids        []jsonrpc.ID     // of the requests
	first      *jsonrpc.Message // request; nil: there is none
	initialize bool             // a request is initialize
}

// servePost is POST /mcp.
func (h *Handler) servePost(q *request) *httpcheck.Refusal {
	form, refusal := httpcheck.AnswerForm(q.r)
	if refusal == nil {
		refusal = checkSingle(q.r)
	}
	if refusal != nil {
		refusal.Unread = true
		return refusal
	}
	var sender connstate.Sender
	if q.c != nil {
		sender = connstate.ForTransport{Connection: q.c}.Sender()
	} else {
		sender = h.registry.Sender(q.principal, h.ClientAddr(q.r))
	}
	body, refusal := h.ReadBody(q.w, q.r, sender.ReserveBody)
	defer sender.ReleaseBody(body.Held)
	q.body = body.Bytes
	p := &post{request: q, form: form}
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
		h.modern.ServePOST(q.w, q.r, q.principal, p.messages[0], form)
	}
	return refusal
}

// serveLegacy serves a POST of a client with sessions, or returns why not.
func (h *Handler) serveLegacy(p *post) *httpcheck.Refusal {
	if !p.initialize && p.id == "" { // a session has its version, whatever the header says
		if refusal := checkVersion(p.version); refusal != nil {
			return refusal
		}
	}
	if p.initialize && p.batch {
		return httpcheck.Refused(http.StatusBadRequest, metrics.PostInvalidRequest, "initialize must not be in a batch")
	}
	if p.id == "" && !p.initialize {
		if done, refusal := h.serveAlone(p); done || refusal != nil {
			return refusal
		}
	}
	if refusal := p.checkBatch(); refusal != nil {
		return refusal
	}
	if p.id == "" && !p.initialize && p.form == httpanswer.FormAny && !httpcheck.AcceptOf(p.r).NamesAnswer() {
		p.form = httpanswer.FormJSON // as curl wants it: it does not know what a stream is
	}
	ctx, refusal := h.Passed(p.r, p.principal)
	if refusal != nil {
		return refusal
	}
	for _, m := range p.messages {
		m.Context = ctx
	}
	s, opened, refusal := h.sessionOf(p, ctx)
	if s == nil {
		return refusal
	}
	defer s.releaseRequest()
	if !opened {
		s.saw(p.version)
		return h.serveIn(s, p, false)
	}
	if !p.initialize {
		s.negotiated(p.version)
	}
	refusal = h.serveIn(s, p, true)
	if refusal != nil {
		s.c.Close(connstate.ClosedClient)
	}
	return refusal
}

// checkBatch refuses an array that its version does not have, and one with an id twice.
func (p *post) checkBatch() *httpcheck.Refusal {
	if !p.batch {
		return nil
	}
	if p.version != "" && p.version != versionAssumed {
		return noBatches(p.version)
	}
	ids := slices.Sorted(slices.Values(p.ids))
	if len(slices.Compact(ids)) < len(p.ids) {
		return httpcheck.Refused(http.StatusBadRequest, metrics.PostInvalidRequest,
			"two requests of the array have the same id")
	}
	return nil
}

func noBatches(version string) *httpcheck.Refusal {
	return httpcheck.Refused(http.StatusBadRequest, metrics.PostInvalidRequest,
		"MCP %.64s has no batches: send each message by itself", version)
}

// serveAlone serves messages without a session that need none, or that get none.
func (h *Handler) serveAlone(p *post) (done bool, refusal *httpcheck.Refusal) {
	m := p.first
	switch {
	case m == nil:
		return false, noSession("", "a notification or a response needs a session: send its id as Mcp-Session-Id")
	case len(p.messages) == 1 && m.Method == mcp.MethodDiscover:
		e := jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
			"server/discover needs the _meta of MCP 2026-07-28; otherwise use initialize")
		refusal = httpcheck.RefusedWith(http.StatusBadRequest, metrics.RejectedBadRequest, e)
		refusal.ID = m.ID
		return false, refusal
	case h.opts.RequireInitialize:
		return false, noSession(m.ID, "initialize first, and send the Mcp-Session-Id of the response")
	case len(p.messages) == 1 && m.Method == mcp.MethodPing:
		// A client that is gone needs no answer.
		_ = h.answer(p.request, p.form).Answer(http.StatusOK, jsonrpc.NewResult(m.ID, []byte("{}")))
		return true, nil
	}
	return false, nil
}

// noSession is the refusal of a message that needs a session, the request id if it is one.
func noSession(id jsonrpc.ID, message string) *httpcheck.Refusal {
	refusal := httpcheck.Refused(http.StatusBadRequest, metrics.PostNoSession, "%s", message)
	refusal.ID = id
	return refusal
}

// sessionOf returns the session of a POST, or a new one if it opens one; the caller must
// call releaseRequest. Without both, another replica has answered the POST.
func (h *Handler) sessionOf(p *post, ctx context.Context) (s *streamSession, opened bool, refusal *httpcheck.Refusal) {
	if p.id == "" {
		opener := openedByInitialize
		if !p.initialize {
			opener = openedAlone
		}
		s, refusal = h.open(p.request, ctx, opener)
		return s, true, refusal
	}
	if p.first != nil && p.c != nil && h.forward(p.request) { // before enter: it may take long, or panic
		return nil, false, nil
	}
	s = h.enter(p.c)
	if s != nil || h.forward(p.request) {
		return s, false, nil
	}
	if p.initialize && !h.isOurs(p.request) { // under the id of a session that is no more, or of another server
		p.id = ""
		s, refusal = h.open(p.request, ctx, openedByInitialize)
		return s, true, refusal
	}
	return h.reopen(p.request, ctx)
}

// isOurs reports whether a request names a session of its principal, which this process
// may have forgotten: it was idle, or the process is new. Without the gateway's own
// handshake there is no going on.
func (h *Handler) isOurs(q *request) bool {
	if q.c != nil && q.c.Client().Transport != connstate.TransportStreamable {
		return false // it goes on there
	}
	return !h.opts.RequireInitialize && h.registry.IDs().Verify(q.id, q.principal)
}

// reopen opens a session under the id that its client has, so that the client notices
// nothing.
func (h *Handler) reopen(q *request, ctx context.Context) (s *streamSession, opened bool, refusal *httpcheck.Refusal) {
	if !h.isOurs(q) { // before the lock: whoever guesses holds up nobody
		return nil, false, unknownSession()
	}
	h.reopening.Lock() // one of several requests at once opens it, the others find it
	defer h.reopening.Unlock()
	c := h.connection(q)
	if c == nil {
		s, refusal = h.open(q, ctx, sessionUsed)
		return s, true, refusal
	}
	s = h.enter(c)
	if s == nil { // it is about to end
		refusal = unknownSession()
	}
	return s, false, refusal
}

// unknownSession refuses a request for a session that is not there: 404 makes a client
// initialize again (MCP 2025-11-25, transports, session management).
func unknownSession() *httpcheck.Refusal {
	return httpcheck.Denied(http.StatusNotFound, metrics.RejectedUnknownConnection,
		"no such session: initialize again, without Mcp-Session-Id")
}

// serveIn passes the messages of a POST to a session, and writes the answers.
func (h *Handler) serveIn(s *streamSession, p *post, opened bool) *httpcheck.Refusal {
	if p.batch && s.speaks() != versionAssumed {
		return noBatches(s.speaks())
	}
	for _, m := range p.messages {
		if err := s.c.CheckBudget(m); err != nil {
			return httpcheck.RefusedBusy(err)
		}
	}
	if len(p.ids) == 0 {
		h.receive(s, p)
		p.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	x := h.newResponse(p.request, p.form, s)
	var err error
	x.st, err = s.openPostStream(p, x)
	if err != nil {
		return unknownSession()
	}
	if opened {
		p.w.Header().Set(headerSession, s.c.ID())
		if p.initialize {
			x.opening, x.opens = opensWaiting, p.ids[0]
		}
	}
	if p.form == httpanswer.FormEvents {
		x.becomeStream()
	}
	h.receive(s, p)
	x.writeToEnd()
	if x.opening == opensRefused {
		s.c.Close(connstate.ClosedServer)
	}
	return nil
}

func (h *Handler) receive(s *streamSession, p *post) {
	for _, m := range p.messages {
		m = s.aim(m)
		if m == nil {
			continue
		}
		s.c.SetCredentials(m, h.Credentials(p.r))
		s.c.SetParent(m, p.r.Header)
		s.c.Observe(m, p.version)
		s.c.Receive(m)
	}
}

// repeats reports whether all requests of a POST may be run twice.
func (h *Handler) repeats(p *post) bool {
	return !slices.ContainsFunc(p.messages,
		func(m *jsonrpc.Message) bool { return m.Kind == jsonrpc.Request && !h.opts.Repeatable(m) })
}

// maxBatch bounds the messages in an array.
const maxBatch = 100

// parse reads the messages of a body.
func (p *post) parse(body []byte) *httpcheck.Refusal {
	parts := []json.RawMessage{body}
	p.batch = bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("["))
	if p.batch {
		var err *jsonrpc.Error
		parts, err = jsonrpc.Split(body, maxBatch)
		if err != nil {
			return httpcheck.RefusedWith(http.StatusBadRequest, metrics.PostInvalidRequest, err)
		}
	}
	for _, part := range parts {
		m, refusal := httpcheck.ParseMessage(part)
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
