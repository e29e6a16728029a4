package gateway

import (
	"sync"
	"sync/atomic"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// repeated are the requests of a connection that are asked for the second time,
// because the session was lost under the first. None is asked a third time.
type repeated struct {
	some atomic.Bool // ids may have entries

	mu  sync.Mutex // guards ids
	ids map[jsonrpc.ID]struct{}
}

// note notes a request, and reports false when it is one already.
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

// forget is called with each request that is answered.
func (r *repeated) forget(id jsonrpc.ID) {
	if !r.some.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
	r.some.Store(len(r.ids) > 0)
}

// repeat brings a request that its session was lost under to the gate, behind
// which the next session is being started; or answers it with e.
func (b *bridge) repeat(m *jsonrpc.Message, e *jsonrpc.Error) {
	if b.g.opts.Retry != RetrySafe || !b.repeated.note(m.ID) {
		b.Fail(m.ID, e, metrics.ErrorSessionLost)
		return
	}
	b.g.metrics.RequestRepeated()
	pass, err := b.c.Readmit(m)
	b.admitted(m, pass, err)
}
