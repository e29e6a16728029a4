package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// stream is a client of HTTP+SSE. It keeps all events that have come.
type stream struct {
	*ssetest.Client
	t     *testing.T
	ended chan struct{} // closed when no more events come

	mu     sync.Mutex
	events []ssetest.Event // guarded by mu
}

// open opens a stream, and returns when its endpoint has come. The client says nothing.
func (g *gateway) open(query string, header ...string) *stream {
	g.t.Helper()
	sent := http.Header{"Accept": {"text/event-stream"}}
	for i := 0; i < len(header); i += 2 {
		sent.Set(header[i], header[i+1])
	}
	c, err := ssetest.Dial(newHTTP(g.t), g.url+"/sse"+query, sent)
	ssetest.Must(g.t, err)
	s := &stream{Client: c, t: g.t, ended: make(chan struct{})}
	go s.read() // ends with the stream
	g.t.Cleanup(func() {
		s.leave()
		if g.t.Failed() {
			g.t.Logf("events of %s:\n%s", c.Post, s.seen())
		}
	})
	return s
}

// leave closes the stream, as a client does that ends.
func (s *stream) leave() {
	s.Close()
	<-s.ended
}

// isOver reports whether the stream has ended.
func (s *stream) isOver() bool { return isClosed(s.ended) }

func (s *stream) read() {
	defer close(s.ended)
	for {
		e, err := s.Next()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.events = append(s.events, e)
		s.mu.Unlock()
	}
}

// all returns the events so far that match; nil matches all.
func (s *stream) all(match func(ssetest.Event) bool) (found []ssetest.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if match == nil || match(e) {
			found = append(found, e)
		}
	}
	return found
}

// seen returns the events so far, for people.
func (s *stream) seen() string {
	var text strings.Builder
	for _, e := range s.all(nil) {
		fmt.Fprintf(&text, "%s: %.300s%s\n", e.Name, e.Data, e.Comment)
	}
	return text.String()
}

// await returns the first event that matches, once it has come.
func (s *stream) await(what string, match func(ssetest.Event) bool) ssetest.Event {
	s.t.Helper()
	var found []ssetest.Event
	await(s.t, what, func() bool {
		found = s.all(match)
		return len(found) > 0
	})
	return found[0]
}

// announced returns the announcement that the gateway makes of the result of its handshake.
func (s *stream) announced() response {
	s.t.Helper()
	e := s.await("the announcement", func(e ssetest.Event) bool { return e.Name == "mcp-response" })
	return parse(s.t, e.Data)
}

// post posts a request, which must be taken.
func (s *stream) post(id, method, params string) {
	s.t.Helper()
	if err := s.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)); err != nil {
		s.t.Errorf("request %s: %v", id, err)
	}
}

// call posts a call of a tool, whose answer comes on the stream.
func (s *stream) call(id, tool, arguments string) {
	s.t.Helper()
	s.post(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
}

// answers returns the answers so far to the request with the id.
func (s *stream) answers(id string) []ssetest.Event {
	return s.all(func(e ssetest.Event) bool { return e.Name == "message" && isAnswer(e.Data, id) })
}

// answer returns the answer to the request with the id, once it has come. There must be one.
func (s *stream) answer(id string) response {
	s.t.Helper()
	var found []ssetest.Event
	await(s.t, "the answer to request "+id, func() bool {
		found = s.answers(id)
		return len(found) > 0
	})
	ssetest.Want(s.t, "number of answers to request "+id, len(found), 1)
	return parse(s.t, found[0].Data)
}

// wantText checks that the request with the id is answered with this text.
func (s *stream) wantText(id, text string) {
	s.t.Helper()
	r := s.answer(id)
	ssetest.Want(s.t, "result of request "+id+", whose error is "+r.Error.Message, r.text(), text)
}

// wantError checks that the request with the id is answered with an error for this reason.
func (s *stream) wantError(id, reason string) {
	s.t.Helper()
	ssetest.Want(s.t, "reason in the answer to request "+id, s.answer(id).Error.Data.Reason, reason)
}

// response is a JSON-RPC response, with what the rules speak of.
type response struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		ServerInfo struct {
			Name string `json:"name"`
		} `json:"serverInfo"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
		Data    struct {
			Type   string `json:"type"`
			Phase  string `json:"phase"`
			Reason string `json:"reason"`
		} `json:"data"`
	} `json:"error"`
}

func (r response) text() string {
	if len(r.Result.Content) == 0 {
		return ""
	}
	return r.Result.Content[0].Text
}

func parse(t *testing.T, data string) (r response) {
	t.Helper()
	ssetest.Must(t, json.Unmarshal([]byte(data), &r))
	return r
}

func isAnswer(data, id string) bool {
	var r response
	return json.Unmarshal([]byte(data), &r) == nil && r.Method == "" && string(r.ID) == id
}
