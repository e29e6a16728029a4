package bridge

import (
	"sync"
	"sync/atomic"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// repeated are the requests of a connection that are sent for the second time,
// because the session was lost under the first. None is sent a third time.
type repeated struct {
	some atomic.Bool // ids may have entries

	mu  sync.Mutex // guards ids
	ids map[jsonrpc.ID]struct{}
}

// note notes a request. It reports false when the request was noted before.
func (r *repeated) note(id jsonrpc.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.ids[id]; again {
		return false
	}
	if r.ids == nil {
		r.ids = make(map[jsonrpc.ID]struct{})
	}
	r.ids[id] = struct{}{}
	r.some.Store(true)
	return true
}

// forget forgets a request that is answered.
func (r *repeated) forget(id jsonrpc.ID) {
	if !r.some.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
	r.some.Store(len(r.ids) > 0)
}

// repeat puts a request under which the session was lost back into the gate, behind
// which the next session is being started; or it answers the request with e.
func (b *Bridge) repeat(m *jsonrpc.Message, e *jsonrpc.Error) {
	if !b.opts.Repeat || !b.repeated.note(m.ID) {
		b.fail(m.ID, e, metrics.ErrorSessionLost)
		return
	}
	b.opts.Metrics.RequestRepeated()
	pass, err := b.c.Readmit(m)
	b.passOrRefuse(m, pass, err)
}
