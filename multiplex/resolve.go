package multiplex

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// How a response was matched to its request, for the log.
const (
	matchedByID   = "id"
	matchedByFIFO = "fifo"
)

func wireID(id int64) jsonrpc.ID { return jsonrpc.ID(strconv.FormatInt(id, 10)) }

// resolve gives a response to the request that it answers.
func (s *Session) resolve(m *jsonrpc.Message) {
	p, by := s.match(m.ID)
	if p == nil {
		s.drop(metrics.DroppedUnknownResponse, "response matches no request", m)
		return
	}
	s.next()
	if p.reply != nil {
		p.reply <- m
		return
	}
	s.logResolve(p, by)
	p.port.client.Answer(p.client, m.WithID(p.client), ErrorType(m))
}

// match finds and removes the request that a response with that id answers. A
// response without an id can only be matched when a single request is out.
func (s *Session) match(id jsonrpc.ID) (*pending, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == jsonrpc.Null {
		p := s.onlyLocked()
		if s.opts.MaxInFlight != 1 || p == nil {
			return nil, ""
		}
		s.removeLocked(p)
		return p, matchedByFIFO
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil || s.pending[n] == nil || !s.pending[n].sent {
		if err == nil && n > 0 {
			delete(s.abandoned, n)
		}
		return nil, ""
	}
	p := s.pending[n]
	s.removeLocked(p)
	return p, matchedByID
}

// onlyLocked returns the one request that the server has, and nil when there
// are others, or may be.
func (s *Session) onlyLocked() *pending {
	var only *pending
	for _, p := range s.pending {
		if !p.sent {
			continue
		}
		if only != nil {
			return nil
		}
		only = p
	}
	if len(s.abandoned) > 0 {
		return nil
	}
	return only
}

// invalid takes what the server sent and is no JSON-RPC. If it is certain which
// request was meant, that one is answered. An id beside a method is one of the
// server's own, whatever else is wrong.
func (s *Session) invalid(m *jsonrpc.Message, err error) {
	if m != nil && !isCall(m) {
		if p, _ := s.match(m.ID); p != nil {
			s.next()
			s.unusable(p, "the server's answer is no valid JSON-RPC response: "+err.Error())
			return
		}
	}
	s.opts.Metrics.Dropped(metrics.DroppedInvalidMessage)
	s.opts.Logger.Warn("server sent an invalid message", "err", err)
}

func isCall(m *jsonrpc.Message) bool {
	_, ok := jsonrpc.Member(m.Raw(), "method")
	return ok
}

// tooLong answers the request whose response was over the limit. When that is
// not certain the session cannot go on: someone would wait for nothing.
func (s *Session) tooLong() error {
	s.opts.Metrics.Dropped(metrics.DroppedTooLong)
	s.mu.Lock()
	p := s.onlyLocked()
	waiters := len(s.pending)
	if p != nil {
		s.removeLocked(p)
	}
	s.mu.Unlock()
	switch {
	case p != nil:
		s.next()
		s.unusable(p, "the server's answer is over the size limit")
	case waiters > 0:
		return jsonrpc.ErrTooLong
	}
	return nil
}

// unusable answers a request whose answer cannot be passed on.
func (s *Session) unusable(p *pending, message string) {
	s.opts.Logger.Warn("server sent an unusable answer", "method", shortText(p.method), "why", message)
	if p.reply != nil {
		p.reply <- &jsonrpc.Message{Kind: jsonrpc.Response, ID: wireID(p.id)}
		return
	}
	p.port.fail(p, ReasonError(message, "invalid_response", false), metrics.ErrorInvalid)
}

// drop counts a message that is thrown away, and says why in the log.
func (s *Session) drop(reason, why string, m *jsonrpc.Message) {
	s.opts.Metrics.Dropped(reason)
	s.opts.Logger.Debug("message dropped", "why", why, "kind", m.Kind.String(), "method", shortText(m.Method))
}

// logResolve writes the life of a request: at debug level, slow ones at warn.
func (s *Session) logResolve(p *pending, by string) {
	took := time.Since(p.started)
	slow := s.opts.SlowRequest > 0 && took >= s.opts.SlowRequest
	if !slow && !s.debug() {
		return
	}
	attrs := []any{"connectionId", p.port.name, "requestId", shortID(p.client), "method", shortText(p.method)}
	s.opts.Logger.Debug("mcp transport send resolve", append(attrs, "matchedBy", by)...)
	attrs = append(attrs, "duration", took)
	if slow {
		s.opts.Logger.Warn("mcp POST slow", attrs...)
		return
	}
	s.opts.Logger.Debug("mcp POST ok", attrs...)
}

// debug reports whether to build the attributes of debug lines at all.
func (s *Session) debug() bool {
	return s.opts.Logger.Enabled(context.Background(), slog.LevelDebug)
}

func shortID(id jsonrpc.ID) string { return shortText(string(id)) }

// shortText bounds what a peer can put into a log line.
func shortText(s string) string { return s[:min(64, len(s))] }

// ErrorType names the outcome of a response for the metrics: "" for a result,
// metrics.ErrorTool for a tool's own error, else the JSON-RPC code.
func ErrorType(m *jsonrpc.Message) string {
	if raw := m.Error(); raw != nil {
		code, _ := jsonrpc.Member(raw, "code")
		return string(code)
	}
	result := m.Result()
	if !bytes.Contains(result, []byte(`"isError"`)) {
		return ""
	}
	if v, _ := jsonrpc.Member(result, "isError"); string(v) == "true" {
		return metrics.ErrorTool
	}
	return ""
}

// errorData is the data member of the errors that the gateway answers with.
type errorData struct {
	Reason    string `json:"reason"`
	Retryable bool   `json:"retryable"`
}

// ReasonError returns an error of the gateway's own for a client's request: the
// reason is for programs, and retryable says that the request had no effect, or
// that repeating it has none.
func ReasonError(message, reason string, retryable bool) *jsonrpc.Error {
	e := jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", message)
	e.Data = errorData{reason, retryable}
	return e
}

func lostError(p *pending, cause error) *jsonrpc.Error {
	return ReasonError(cause.Error(), "session_lost", !p.sent || readOnly(p.method))
}

// readOnly reports whether repeating a request changes nothing at the server.
func readOnly(method string) bool {
	switch method {
	case "tools/list", "prompts/list", "prompts/get", "resources/list", "resources/read",
		"resources/templates/list", "completion/complete":
		return true
	}
	return false
}
