package streamable

import (
	"encoding/json"
	"strconv"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Some clients, such as claude.ai, give each request the same id. Over this transport each
// POST has a response of its own, so its answer cannot be taken for another's. A request
// whose id another one has that is not answered goes on under an id of the gateway's own,
// its double; its answer has the client's id again.

// doubles are the requests of a session that go on under another id. Guarded by session.mu.
type doubles struct {
	last  int
	asked map[jsonrpc.ID]jsonrpc.ID // the client's ids, by those of the gateway
}

// giveOtherID returns the message of a request under another id.
func (d *doubles) giveOtherID(m *jsonrpc.Message) *jsonrpc.Message {
	d.last++
	double := jsonrpc.ID(strconv.Quote("double-" + strconv.Itoa(d.last)))
	if d.asked == nil {
		d.asked = make(map[jsonrpc.ID]jsonrpc.ID)
	}
	d.asked[double] = m.ID
	return renamed(m, m.WithID(double))
}

// restore returns an answer to a request with the client's id, and that id. It forgets the
// double.
func (d *doubles) restore(answer []byte, id jsonrpc.ID) ([]byte, jsonrpc.ID) {
	asked, ok := d.asked[id]
	if !ok {
		return answer, id
	}
	delete(d.asked, id)
	m, err := jsonrpc.Parse(answer)
	if err != nil { // it was made from a message that is valid
		return answer, asked
	}
	return m.WithID(asked), asked
}

// renamed returns m as another message with the same context.
func renamed(m *jsonrpc.Message, data []byte) *jsonrpc.Message {
	other, err := jsonrpc.Parse(data)
	if err != nil { // data was made from a message that is valid
		return m
	}
	other.Context, other.Trace = m.Context, m.Trace
	return other
}

// meantLocked returns the ids under which those requests in flight go that a client means by an id: the
// requests with that id or, if there is none, those whose ids can mean the same, such as "1" and 1.
func (s *streamSession) meantLocked(id jsonrpc.ID) (same []jsonrpc.ID) {
	var alike []jsonrpc.ID
	for ours := range s.calls {
		asked, doubled := s.doubles.asked[ours]
		if !doubled {
			asked = ours
		}
		switch {
		case asked == id:
			same = append(same, ours)
		case jsonrpc.Alike(asked, id):
			alike = append(alike, ours)
		}
	}
	if len(same) == 0 {
		return alike
	}
	return same
}

// aim returns a message of the client as the gateway passes it on. A cancellation gets the id
// under which its request goes. It returns nil for one that may mean any of several requests:
// none of them is cancelled.
func (s *streamSession) aim(m *jsonrpc.Message) *jsonrpc.Message {
	if m.Method != mcp.MethodCancelled {
		return m
	}
	s.mu.Lock()
	meant := s.meantLocked(jsonrpc.ID(m.RequestID.Value))
	s.mu.Unlock()
	switch {
	case len(meant) > 1:
		s.h.opts.Logger.Info("cancellation dropped: several requests in flight have its id", "connectionId",
			s.c.ShortID())
		return nil
	case len(meant) == 0 || m.RequestID.Ambiguous:
		return m
	}
	return renamed(m, m.WithValue(m.RequestID, json.RawMessage(meant[0])))
}
