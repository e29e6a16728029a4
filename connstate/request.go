package connstate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Request is a client's request from its POST until it is answered. Whoever holds a
// pointer to it may answer it: of all calls of Answer and Fail, at most one reports true, and
// that one logs, counts and sends the answer.
//
// A notification passes the gate as a Request that has only a Message, and that nobody
// answers.
type Request struct {
	// ID and Method are the client's; Started is when the POST came.
	ID      jsonrpc.ID
	Method  string
	Started time.Time

	// These belong to the one that handles the request: the client's handler, the gate
	// or the session. Message is the request while it may still be sent to a server. A session that has the request
	// keeps it instead, and gives it back with a request that may be repeated.
	// Backpressure makes Answer wait for room in the outbox, for a bounded time.
	Message      *jsonrpc.Message
	Backpressure bool

	gateWait atomic.Int64 // how long the request has waited at gates, in nanoseconds

	// committed says that a server may have the request, and that repeating it may change
	// something there. Guarded by c.mu, as passage is.
	committed bool
	passage   passage

	hearing   atomic.Uint32 // holds a hearing; written under c.mu, so that it agrees with c.requests
	key       jsonrpc.ID    // in c.requests: ID, unless the hearing is silenced; guarded by c.mu
	c         *Connection
	auditLine *auditLine             // nil: the request is not audited
	cost      int                    // taken from the budget
	onAnswer  func(errorType string) // written under c.mu while the request is unanswered
	through   func(result json.RawMessage) json.RawMessage
	trace     *traced // nil without Options.Tracer
}

// hearing is what a client still hears of its request.
type hearing = uint32

const (
	awaited  hearing = iota // progress, and then the answer
	silenced                // nothing, though the server may still answer: see Silence
	answered                // nothing, or the answer that is on its way
)

// MaxContextBytes is what a context may hold of an HTTP request, in bytes.
const MaxContextBytes = 8 << 10

// BeginRequest adds a client's request to the unanswered ones when its POST arrives: its
// duration counts from here. It fails with ErrDuplicate, ErrTooManyPending, ErrBusy
// or ErrClosed.
func (c ForHandler) BeginRequest(m *jsonrpc.Message) (*Request, error) {
	r := &Request{ID: m.ID, Method: m.Method, Started: time.Now(), Message: m, c: c.Connection, auditLine: c.auditOf(m)}
	r.cost = 1<<10 + 2*len(m.ID) + len(m.Raw()) // about what the gateway keeps of it until it is answered
	if asker.Before(m.Context) != nil {
		r.cost += MaxContextBytes
	}
	r.startTrace(m)
	if err := c.addRequest(r); err != nil {
		r.logDebug("mcp POST failed", "err", err)
		r.audit("refused", 0, 0)
		r.endTrace("refused", err.Error())
		if err == ErrTooManyPending {
			c.opts.Metrics.RequestStarted()
			c.opts.Metrics.RequestDone(r.Method, metrics.ErrorBusy, 0, "")
		}
		return nil, err
	}
	if m.Method == mcp.MethodInitialize {
		c.sawClient(m)
	}
	c.opts.Metrics.RequestStarted()
	r.logDebug("mcp POST start")
	return r, nil
}

// Arrive notes that a request comes, until BeginRequest has it. It reports false if another request of the
// connection has the same id, and comes too or is unanswered. The caller must call left when the handler has returned.
func (c ForTransport) Arrive(m *jsonrpc.Message) (left func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests[m.ID] != nil || c.arriving[m.ID] != nil {
		return nil, false
	}
	if c.arriving == nil {
		c.arriving = make(map[jsonrpc.ID]*jsonrpc.Message)
	}
	c.arriving[m.ID] = m
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.arriving[m.ID] == m {
			delete(c.arriving, m.ID)
		}
	}, true
}

// addRequest enters a request as unanswered, under its id, until its answer is on the way. It fails if the connection
// is closed, has a request with that id, or has too many, and with ErrBusy if there is no room for its bytes in the
// gateway.
func (c *Connection) addRequest(r *Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known.State == Closed:
		return ErrClosed
	case c.requests[r.ID] != nil:
		return ErrDuplicate
	case len(c.requests) >= c.opts.MaxPending:
		return ErrTooManyPending
	case !c.opts.Budget.Reserve(r.cost, metrics.HeldPost):
		return ErrBusy
	}
	if c.requests == nil {
		c.requests = make(map[jsonrpc.ID]*Request)
	}
	r.key = r.ID
	c.requests[r.key] = r
	if c.arriving[r.ID] == r.Message {
		delete(c.arriving, r.ID)
	}
	return nil
}

// OnAnswer makes the answer to the request call f with the error type. It does nothing if
// the request is answered.
func (r *Request) OnAnswer(f func(errorType string)) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.c.requests[r.key] == r {
		r.onAnswer = f
	}
}

// Through has a result on its way to the client replaced by what f returns. The caller must not have passed the request
// on before. f gets no errors, and must not change the bytes.
func (r *Request) Through(f func(result json.RawMessage) json.RawMessage) { r.through = f }

// changed returns a response with the result that Through makes of its own.
func (r *Request) changed(response []byte) []byte {
	result, ok := rawjson.Member(response, "result")
	if !ok {
		return response
	}
	now := r.through(result)
	if bytes.Equal(now, result) {
		return response
	}
	return rawjson.ReplaceMember(response, now, "result")
}

// Commit notes that a server gets the request, and that repeating it may change something
// there. It reports false if the request is answered or its connection closed: then the
// client may have been told to repeat it, and no server may get it.
func (r *Request) Commit() bool {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.committed = r.c.requests[r.key] == r
	return r.committed
}

// Committed reports whether an unanswered request was committed, also one that Close has
// left unanswered.
func (c ForTransport) Committed(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[id]
	if r == nil {
		r = c.unanswered[id]
	}
	return r != nil && r.committed
}

// Request returns the unanswered request with that id, or nil.
func (c *Connection) Request(id jsonrpc.ID) *Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[id]
}

// Unanswered returns the unanswered requests.
func (c *Connection) Unanswered() []*Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.requests))
}

// InFlight returns the number of unanswered requests.
func (c *Connection) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requests)
}

// Answer sends the response to the request, unless the client has cancelled it: see Silence. errorType names
// the outcome for the log and the metrics, empty for success. Answer reports false, and does nothing, if the
// request is answered already or its connection closed.
func (r *Request) Answer(response []byte, errorType string) bool {
	return r.answer(response, errorType, "", r.Backpressure)
}

// Fail is Answer with an error of the gateway. It never waits.
func (r *Request) Fail(e *jsonrpc.Error, errorType string) bool {
	response := jsonrpc.NewError(r.ID, e)
	return r.answer(response, errorType, e.Message, false)
}

// answer is Answer. message is that of an error of the gateway, for the log: the messages
// of a server's errors may hold params.
func (r *Request) answer(response []byte, errorType, message string, mayWait bool) bool {
	c := r.c
	c.mu.Lock()
	if c.requests[r.key] != r {
		c.mu.Unlock()
		return false
	}
	c.lastDone.Store(time.Now().UnixNano()) // before the delete: Idle must see one of them
	delete(c.requests, r.key)
	isSilenced := r.hearing.Swap(answered) == silenced // before the answer is sent: see IsLate
	c.opts.Budget.Release(r.cost)
	c.answering++
	dialect := c.known.Dialect
	c.mu.Unlock()
	c.requestsDone.Add(1)
	switch {
	case isSilenced:
		response, errorType = nil, metrics.ErrorCanceled
	case errorType == "" && r.through != nil:
		response = r.changed(response)
	}
	if errorType != "" {
		c.requestsFailed.Add(1)
	}
	r.report(errorType, message, len(response))
	if !isSilenced {
		// A connection that is slow or gone has been closed.
		_ = c.send(Event{Data: response, Related: r.ID, Answer: true}, dialect, mayWait)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answering--
	c.signalQuietLocked()
	return true
}

// Silence keeps the answer to a request and its progress from a client that has cancelled it, and has
// forgotten its id: some close the connection at an unknown one. The id is free for another request. Over
// Streamable HTTP, where the POST has to end, it does nothing. Nor does it for a client in this process, in front of
// which there may be such a POST.
func (r *Request) Silence() {
	c := r.c
	if c.client.Transport == TransportStreamable || c.client.Transport == TransportInProcess {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests[r.key] != r || !r.hearing.CompareAndSwap(awaited, silenced) {
		return
	}
	delete(c.requests, r.key)
	r.key = jsonrpc.ID(fmt.Sprintf("cancelled %p", r)) // no id of a client
	c.requests[r.key] = r
}

// SendProgress sends a notification of the request's progress, as Send does if it may wait,
// else as SendNow does. It drops the notification when the request is answered: no progress
// may follow the answer (MCP 2025-11-25, progress).
func (r *Request) SendProgress(message []byte, mayWait bool) {
	// A connection that is slow or gone has been closed.
	_ = r.c.send(Event{Data: message, Related: r.ID, progress: r}, r.c.dialect(), mayWait)
}

// Quiet returns a channel that is closed once no request is unanswered, which may be now,
// or the connection is closed.
func (c *Connection) Quiet() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awaitQuietLocked()
}

// awaitQuietLocked returns a channel that is closed at the first moment without an unanswered request, perhaps now.
func (c *Connection) awaitQuietLocked() <-chan struct{} {
	if c.quiet == nil {
		c.quiet = make(chan struct{})
	}
	quiet := c.quiet
	c.signalQuietLocked()
	return quiet
}

// signalQuietLocked closes quiet when no request is unanswered and no response is on
// its way into the outbox.
func (c *Connection) signalQuietLocked() {
	if c.quiet != nil && len(c.requests) == 0 && c.answering == 0 {
		close(c.quiet)
		c.quiet = nil
	}
}

// report counts, audits and logs an answered request. The log has "mcp POST start" when a POST
// arrives, and one of "mcp POST ok", "failed" and "slow" when it is answered, with the
// duration that the metric has, and how much of it was the wait for the server's start. A refused
// request has only "failed".
func (r *Request) report(errorType, message string, answerBytes int) {
	c := r.c
	took := time.Since(r.Started)
	exemplar := ""
	if span := r.spanContext(); span.IsSampled() {
		exemplar = span.TraceID().String()
	}
	c.opts.Metrics.RequestDone(r.Method, errorType, took, exemplar)
	r.audit(errorType, took, answerBytes)
	r.endTrace(errorType, message)
	if r.onAnswer != nil {
		r.onAnswer(errorType)
	}
	// If the client ended the request, its duration says nothing about the server.
	slow := c.opts.SlowRequest > 0 && took >= c.opts.SlowRequest && c.readyFor(c.opts.SlowRequest) &&
		errorType != metrics.ErrorCanceled && errorType != metrics.ErrorClosed
	if !slow && !c.debugEnabled() {
		return
	}
	attrs := []any{"duration", took}
	if waited := time.Duration(r.gateWait.Load()).Round(time.Millisecond); waited > 0 {
		attrs = append(attrs, "waited", waited)
	}
	if errorType != "" {
		attrs = append(attrs, "reason", clip.Short(errorType))
	}
	if message != "" {
		attrs = append(attrs, "err", message[:min(512, len(message))])
	}
	switch {
	case slow:
		c.opts.limited.Warn("mcp POST slow", append(r.logAttrs(), attrs...)...)
	case errorType != "":
		r.logDebug("mcp POST failed", attrs...)
	default:
		r.logDebug("mcp POST ok", attrs...)
	}
}

// readyFor reports whether the connection had its first session d ago: the start of the
// server makes no request slow, as it has lines of its own.
func (c *Connection) readyFor(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.known.Ready.IsZero() && time.Since(c.known.Ready) >= d
}

func (r *Request) logDebug(line string, attrs ...any) {
	if r.c.debugEnabled() { // else the attributes are not built
		r.c.opts.Logger.Debug(line, append(r.logAttrs(), attrs...)...)
	}
}

// logAttrs returns what each log line about the request has: its connection, its trace, its id and its method.
func (r *Request) logAttrs() []any {
	attrs := []any{"connectionId", r.c.ShortID()}
	if r.c.client.Transport != "" {
		attrs = append(attrs, "transport", r.c.client.Transport)
	}
	if span := r.spanContext(); span.IsValid() {
		attrs = append(attrs, "traceId", span.TraceID().String())
	}
	return append(attrs, "requestId", clip.Short(string(r.ID)), "method", clip.Short(r.Method))
}

func (c *Connection) debugEnabled() bool {
	return c.opts.Logger.Enabled(context.Background(), slog.LevelDebug)
}
