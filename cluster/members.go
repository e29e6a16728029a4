package cluster

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

const (
	maxMembers  = 4096
	maxMoved    = 10_000
	silentAfter = 4        // ticks without a heartbeat
	absentAfter = 15       // ticks without one: nobody waits for the replica any more
	maxBeat     = 64 << 10 // bytes of a heartbeat
	cutAfter    = 2        // ticks without one of this replica's own: before it finds others silent
	shownFor    = 60       // ticks that a silent replica is shown
)

// heartbeat is what a replica tells the others each second.
type heartbeat struct {
	Name    string          `json:"name"`
	Address string          `json:"address"`           // where it takes requests
	Joining bool            `json:"joining,omitempty"` // it does not serve yet
	Leaving bool            `json:"leaving,omitempty"`
	Servers map[string]load `json:"servers,omitempty"`
}

// load is what a replica uses of a server.
type load struct {
	connstate.Usage
	Draining bool `json:",omitempty"`
}

// member is what is known of a replica.
type member struct {
	heartbeat // the last one
	id        string
	number    uint64 // of the last heartbeat
	quiet     int    // ticks since then, while NATS was connected
	lost      bool   // nobody was there when it had been silent for long
	checked   bool   // somebody finds out now whether it lives
}

// silent reports whether the member may be gone.
func (m *member) silent() bool { return m.quiet > silentAfter || m.Leaving }

// replica returns the member as httpcheck shows it.
func (m *member) replica() httpcheck.Replica {
	r := httpcheck.Replica{Name: m.Name, ID: m.id, Silent: m.silent()}
	for _, l := range m.Servers {
		r.Connections += l.Connections
		r.Draining = r.Draining || l.Draining
	}
	return r
}

// heard takes a heartbeat.
func (n *node) heard(f *frame) {
	var next heartbeat
	if json.Unmarshal(f.payload, &next) != nil {
		return
	}
	n.mu.Lock()
	if len(n.members) >= maxMembers {
		maps.DeleteFunc(n.members, func(_ string, m *member) bool { return m != n.self && m.quiet > absentAfter })
	}
	m := n.members[f.from]
	if m == nil && len(n.members) < maxMembers {
		m = &member{id: f.from}
		n.members[m.id] = m
	}
	if m == nil || f.number <= m.number { // it came late, or again
		n.mu.Unlock()
		return
	}
	back := m == n.self && m.quiet > cutAfter
	m.number, m.quiet = f.number, 0
	if m != n.self {
		m.heartbeat, m.lost = next, false
	}
	n.mu.Unlock()
	if next.Leaving {
		n.transport.CloseIdleConnections() // it waits for that
	}
	if back {
		n.returned(n.nc)
	}
}

// state reports whether NATS is connected, and a replica silent, or gone: it left, or was not heard for long, or ever.
func (n *node) state(id string) (connected, silent, gone bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	m := n.members[id]
	gone = m == nil || m.Leaving || m.quiet > absentAfter
	return n.connectedLocked(), gone || m.silent(), gone
}

// address returns where a replica takes requests.
func (n *node) address(id string) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if m := n.members[id]; m != nil {
		return m.Address
	}
	return ""
}

// name returns what people call a replica.
func (n *node) name(id string) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if m := n.members[id]; m != nil {
		return m.Name
	}
	return id
}

// mayListen reports whether a request may be sent to a replica: it has been heard, has not left,
// and was not missing when somebody tried after its silence.
func (n *node) mayListen(id string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	m := n.members[id]
	return m != nil && !m.Leaving && !m.lost
}

// missing notes that a replica was not there although it is silent for long: until it is heard
// again, nobody tries.
func (n *node) missing(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.members[id]; m != nil && m.quiet > absentAfter {
		m.lost = true
	}
}

// candidates returns the replicas that may go on with a session of a server, by the weight
// that each has for its id: all replicas find the same order.
func (n *node) candidates(server, id string) (ids []string) {
	n.mu.RLock()
	for _, m := range n.members {
		if l, ok := m.Servers[server]; ok && !l.Draining && !m.silent() && !m.Joining {
			ids = append(ids, m.id)
		}
	}
	n.mu.RUnlock()
	slices.SortFunc(ids, func(a, b string) int {
		x, y := sha256.Sum256([]byte(id+a)), sha256.Sum256([]byte(id+b))
		return bytes.Compare(x[:], y[:])
	})
	return ids
}

// Replicas returns what is known of the replicas, this one first and the others by name.
func (n *node) Replicas() []httpcheck.Replica {
	n.mu.RLock()
	defer n.mu.RUnlock()
	all := []httpcheck.Replica{n.self.replica()}
	for _, m := range n.members {
		if m != n.self && !m.Leaving && m.quiet <= shownFor {
			all = append(all, m.replica())
		}
	}
	slices.SortFunc(all[1:], func(a, b httpcheck.Replica) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}
