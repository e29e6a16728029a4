package multiplex

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	methodElicit            = "elicitation/create"
	methodElicitationIsOver = "notifications/elicitation/complete"

	// codeElicitationRequired is the error of a request that needs the user to
	// visit URLs first (MCP 2025-11-25).
	codeElicitationRequired = "-32042"

	// maxElicitations bounds those of a session that are known; the oldest go.
	maxElicitations = 1024
)

// elicitations are whom the server has sent to a URL, by the ids that it has given
// that: their end is told to nobody else. Guarded by Session.mu.
type elicitations struct {
	ports map[string]*Port
	order []string
}

func (c *elicitations) add(id string, t *Port) {
	if c.ports == nil {
		c.ports = make(map[string]*Port)
	}
	if c.ports[id] == nil {
		c.order = append(c.order, id)
	}
	c.ports[id] = t
	if len(c.order) > maxElicitations {
		delete(c.ports, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *elicitations) remove(id string) *Port {
	t := c.ports[id]
	if t != nil {
		delete(c.ports, id)
		c.order = slices.DeleteFunc(c.order, func(other string) bool { return other == id })
	}
	return t
}

func (c *elicitations) leave(t *Port) {
	c.order = slices.DeleteFunc(c.order, func(id string) bool {
		if c.ports[id] != t {
			return false
		}
		delete(c.ports, id)
		return true
	})
}

// learnElicitation notes an elicitation that a port is told of.
func (s *Session) learnElicitation(t *Port, rawID json.RawMessage) {
	id, ok := jsonrpc.Text(rawID)
	if !ok || !s.opts.Shared || len(id) > jsonrpc.MaxIDBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.left {
		s.elicitations.add(id, t)
	}
}

// learnElicitations notes those that a request needs first.
func (s *Session) learnElicitations(t *Port, fault json.RawMessage) {
	if !s.opts.Shared || !bytes.Contains(fault, []byte(codeElicitationRequired)) {
		return
	}
	list, _ := jsonrpc.Member(fault, "data", "elicitations")
	jsonrpc.Each(list, func(element json.RawMessage) {
		id, _ := jsonrpc.Member(element, "elicitationId")
		s.learnElicitation(t, id)
	})
}

// elicitationOver tells the client that an elicitation was for that it is over.
func (s *Session) elicitationOver(m *jsonrpc.Message) {
	at, _ := m.Param("elicitationId")
	id, _ := jsonrpc.Text(m.At(at))
	s.mu.Lock()
	t := s.elicitations.remove(id)
	s.mu.Unlock()
	if t == nil {
		s.drop(metrics.DroppedUnattributed, "it is not known whose elicitation this is", m)
		return
	}
	deliver([]*Port{t}, m.Method, m.Raw())
}
