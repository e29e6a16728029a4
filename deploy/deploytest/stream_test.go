//go:build deploy

package deploytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// stream is a client of HTTP+SSE that never initializes, as simple ones do not: its stream
// stays while its server fails.
type stream struct {
	*ssetest.Client
	t       *testing.T
	server  string
	answers chan message // to requests, one at a time
	ended   atomic.Bool
	id      int
}

type message struct {
	ID     any
	Result json.RawMessage
	Error  json.RawMessage
}

// openStreams opens so many streams to each server, all at once.
func openStreams(t *testing.T, g *gateway, counts map[string]int) (all []*stream) {
	t.Helper()
	for server, n := range counts {
		for range n {
			all = append(all, openStream(t, g, server))
		}
	}
	return all
}

// dial opens a stream of a server. A refusal is an error with the status.
func (g *gateway) dial(server string) (*ssetest.Client, error) {
	client := &http.Client{Transport: &http.Transport{}}
	return ssetest.Dial(client, "http://"+g.addr+"/"+server+"/sse", http.Header{"Authorization": {"Bearer " + token}})
}

func openStream(t *testing.T, g *gateway, server string) *stream {
	t.Helper()
	c, err := g.dial(server)
	if err != nil {
		t.Fatalf("a stream of %s: %v", server, err)
	}
	s := &stream{Client: c, t: t, server: server, answers: make(chan message, 16)}
	done := make(chan struct{})
	go func() { // ends with the stream, which the cleanup ends
		defer close(done)
		defer s.ended.Store(true)
		for {
			e, err := c.Next()
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal([]byte(e.Data), &m) == nil && (m.Result != nil || m.Error != nil) {
				s.answers <- m
			}
		}
	}()
	t.Cleanup(func() {
		c.Close()
		<-done
		c.HTTP.CloseIdleConnections()
	})
	return s
}

// call calls the tool of the demo server that echoes, and reports whether the answer is
// right. Some answer must come.
func (s *stream) call() bool {
	s.t.Helper()
	id := fmt.Sprint("call ", s.id+1)
	s.post("echo", fmt.Sprintf(`{"message":%q}`, id))
	for deadline := time.After(patience); ; {
		select {
		case m := <-s.answers:
			if m.ID == id { // others are of the handshake
				return strings.Contains(string(m.Result), id)
			}
		case <-deadline:
			s.t.Fatalf("no answer of %s in %v", s.server, patience)
		}
	}
}

// post sends a call of a tool.
func (s *stream) post(tool, arguments string) {
	s.t.Helper()
	s.id++
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"call %d","method":"tools/call","params":{"name":%q,"arguments":%s}}`, s.id, tool, arguments)
	if err := s.Send(body); err != nil {
		s.t.Fatalf("%s: %v", s.server, err)
	}
}
