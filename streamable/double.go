package streamable

import (
	"strconv"

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

// add returns the message of a request under another id.
func (d *doubles) add(m *jsonrpc.Message) *jsonrpc.Message {
	d.last++
	double := jsonrpc.ID(strconv.Quote("double-" + strconv.Itoa(d.last)))
	renamed, err := jsonrpc.Parse(m.WithID(double))
	if err != nil { // it was valid before
		return m
	}
	renamed.Context, renamed.Trace = m.Context, m.Trace
	if d.asked == nil {
		d.asked = make(map[jsonrpc.ID]jsonrpc.ID)
	}
	d.asked[double] = m.ID
	return renamed
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

// has reports whether a request with the client's id goes on under another one.
func (d *doubles) has(id jsonrpc.ID) bool {
	for _, asked := range d.asked {
		if asked == id {
			return true
		}
	}
	return false
}
