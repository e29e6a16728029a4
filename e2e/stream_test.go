package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// stream is a stream of HTTP+SSE whose events are kept.
type stream struct {
	*ssetest.Client
	t *testing.T

	mu     sync.Mutex
	events []event       // guarded by mu
	grown  chan struct{} // guarded by mu; closed and replaced when events grow or the stream ends
	err    error         // guarded by mu; nil while the stream is open
	ended  chan struct{} // closed when the reader has ended
}

type event = ssetest.Event

// openStream opens a stream and returns when the endpoint has come.
func openStream(t *testing.T, target string) *stream {
	t.Helper()
	s, err := tryStream(t, target)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	return s
}

// tryStream is openStream for a GET that may be refused.
func tryStream(t *testing.T, target string) (*stream, error) {
	t.Helper()
	return dialStream(t, target, http.Header{"Accept": {"text/event-stream"}})
}

// dialStream is tryStream with the headers of the GET and of each POST.
func dialStream(t *testing.T, target string, header http.Header) (*stream, error) {
	t.Helper()
	c, err := ssetest.Dial(newHTTP(t), target, header)
	if err != nil {
		return nil, err
	}
	s := &stream{Client: c, t: t, grown: make(chan struct{}), ended: make(chan struct{})}
	go s.read() // ends with the body, which close ends
	t.Cleanup(s.close)
	return s, nil
}

// close ends the stream from the client's side and waits for the reader.
func (s *stream) close() {
	s.Close()
	<-s.ended
}

func (s *stream) read() {
	defer close(s.ended)
	for {
		e, err := s.Next()
		if err != nil {
			s.add(func() { s.err = err })
			return
		}
		s.add(func() { s.events = append(s.events, e) })
	}
}

func (s *stream) add(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.grown)
	s.grown = make(chan struct{})
}

// await returns the first event, past ones included, that matches.
func (s *stream) await(what string, match func(event) bool) event {
	s.t.Helper()
	deadline := time.After(patience)
	for next := 0; ; {
		s.mu.Lock()
		all, grown, err := s.events, s.grown, s.err
		s.mu.Unlock()
		for ; next < len(all); next++ {
			if match(all[next]) {
				return all[next]
			}
		}
		if err != nil {
			s.t.Fatalf("no %s: stream ended: %v; came:\n%s", what, err, s.dump())
		}
		select {
		case <-grown:
		case <-deadline:
			s.t.Fatalf("no %s in %v; came:\n%s", what, patience, s.dump())
		}
	}
}

// dump returns what has come so far.
func (s *stream) dump() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, e := range s.events {
		fmt.Fprintf(&b, "%s: %s\n", e.Name, e.Data)
	}
	return b.String()
}

// answers matches the response to the request with the id, given as its bytes,
// under one event name.
func answers(name, id string) func(event) bool {
	return func(e event) bool {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method *string         `json:"method"`
		}
		// Most events are for others: only what may match is parsed.
		return e.Name == name && strings.Contains(e.Data, id) && json.Unmarshal([]byte(e.Data), &m) == nil && m.Method == nil && string(m.ID) == id
	}
}

// accepted posts a message, which must be accepted.
func (s *stream) accepted(message string) {
	s.t.Helper()
	if err := s.Send(message); err != nil {
		s.t.Fatalf("%.200s: %v", message, err)
	}
}

// request posts a request with the id's bytes and returns the response that
// came as "message".
func (s *stream) request(id, method, params string) response {
	s.t.Helper()
	s.accepted(requestJSON(id, method, params))
	return parseResponse(s.t, s.await("response to "+id, answers("message", id)).Data)
}

// call calls a tool and returns the text of its result.
func (s *stream) call(id, tool, args string) string {
	s.t.Helper()
	return s.request(id, "tools/call", callParams(tool, args)).text(s.t)
}

func requestJSON(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
}

func callParams(tool, args string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args)
}

// response is a JSON-RPC response.
type response struct {
	ID     json.RawMessage `json:"id"`
	Result *struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	} `json:"result"`
	Error *rpcError `json:"error"`
}

func parseResponse(t *testing.T, data string) response {
	t.Helper()
	var r response
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		t.Fatalf("response %s: %v", data, err)
	}
	return r
}

// text returns the first text of a tool's result.
func (r response) text(t *testing.T) string {
	t.Helper()
	if r.Error != nil || r.Result == nil || r.Result.IsError || len(r.Result.Content) != 1 {
		t.Fatalf("response to %s = %+v (error %v), want one text", r.ID, r.Result, r.Error)
	}
	return r.Result.Content[0].Text
}

// rpcError is a JSON-RPC error as a client reports it.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("%s (code %d, data %s)", e.Message, e.Code, e.Data)
}

// names reports whether the error's data or message names the reason.
func (e *rpcError) names(reason string) bool {
	return bytes.Contains(e.Data, []byte(reason)) || strings.Contains(e.Message, reason)
}

// asRPCError returns the JSON-RPC error in err, nil if it is something else.
func asRPCError(err error) *rpcError {
	e, _ := errors.AsType[*rpcError](err)
	return e
}
