package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
)

const (
	maxMembers  = 4096
	silentAfter = 4  // ticks without a heartbeat
	absentAfter = 15 // ticks without one: nobody waits for the replica any more
	cutAfter    = 2  // ticks without one of this replica's own: before it finds others silent
	shownFor    = 60 // ticks that a silent replica is shown
	seenNumbers = 1 << 18
)

// heartbeat is what a replica tells the others each second.
type heartbeat struct {
	Name    string          `json:"name"`
	Joining bool            `json:"joining,omitempty"` // it does not serve yet
	Leaving bool            `json:"leaving,omitempty"`
	Servers map[string]load `json:"servers,omitempty"`
}

// load is what a replica uses of a server.
type load struct {
	Connections int
	Draining    bool   `json:",omitempty"`
	Origins     []byte `json:",omitempty"` // 16 bytes for each
	told        bool   // the parts know what they have opened
}

// add adds what a part uses, with origins while left bytes for them are left.
func (l *load) add(u connstate.Usage, left int) {
	l.Connections += u.Connections
	for _, o := range u.Origins[:min(len(u.Origins), max(0, left-len(l.Origins))/16)] {
		l.Origins = binary.BigEndian.AppendUint64(l.Origins, o.Origin)
		l.Origins = binary.BigEndian.AppendUint32(l.Origins, uint32(o.Open))
		l.Origins = binary.BigEndian.AppendUint32(l.Origins, uint32(o.Opened))
	}
}

// sum returns what all loads of a server use.
func sum(loads []load) (u connstate.Usage) {
	origins := make(map[uint64]connstate.OriginUsage)
	for _, l := range loads {
		u.Connections += l.Connections
		for b := l.Origins; len(b) >= 16; b = b[16:] {
			o := origins[binary.BigEndian.Uint64(b)]
			o.Origin = binary.BigEndian.Uint64(b)
			o.Open += int(binary.BigEndian.Uint32(b[8:]))
			if !l.told {
				o.Opened += int(binary.BigEndian.Uint32(b[12:]))
			}
			origins[o.Origin] = o
		}
	}
	u.Origins = slices.Collect(maps.Values(origins))
	return u
}

// member is what is known of a replica.
type member struct {
	heartbeat // the last one
	id        string
	number    uint64 // of the last heartbeat
	quiet     int    // ticks since then, while NATS was connected
	told      bool   // the parts know what it has opened
	seen      numbers
}

// silent reports whether the member may be gone.
func (m *member) silent() bool { return m.quiet > silentAfter || m.Leaving }

// replica returns the member as front shows it.
func (m *member) replica() front.Replica {
	r := front.Replica{Name: m.Name, ID: m.id, Silent: m.silent()}
	for _, l := range m.Servers {
		r.Connections += l.Connections
		r.Draining = r.Draining || l.Draining
	}
	return r
}

// numbers are those of the last exchanges that a replica has begun here.
type numbers struct {
	top  uint64
	bits []uint64
}

// has reports whether n was added, or is too old to tell.
func (s *numbers) has(n uint64) bool {
	return n <= s.top && (s.top-n >= seenNumbers || s.bits[n%seenNumbers/64]&(1<<(n%64)) != 0)
}

func (s *numbers) add(n uint64) {
	if s.bits == nil || n > s.top+seenNumbers {
		s.bits, s.top = make([]uint64, seenNumbers/64), max(n, 1)-1
	}
	for ; s.top < n; s.top++ {
		next := (s.top + 1) % seenNumbers
		s.bits[next/64] &^= 1 << (next % 64)
	}
	s.bits[n%seenNumbers/64] |= 1 << (n % 64)
}

// heard takes a heartbeat.
func (n *Node) heard(f *frame) {
	var next heartbeat
	if json.Unmarshal(f.payload, &next) != nil {
		return
	}
	n.mu.Lock()
	m := n.members[f.from]
	if m == nil && n.makeRoomLocked() {
		m = &member{id: f.from}
		n.members[m.id] = m
	}
	if m == nil || f.number <= m.number { // it came late, or again
		n.mu.Unlock()
		return
	}
	back := m.id == n.id && m.quiet > cutAfter
	m.heartbeat, m.number, m.quiet, m.told = next, f.number, 0, false
	n.mu.Unlock()
	if back {
		n.returned()
	}
}

// makeRoomLocked makes room for another member, in the place of one that is silent: what is
// known of the silent ones keeps their requests from being served again.
func (n *Node) makeRoomLocked() bool {
	if len(n.members) < maxMembers {
		return true
	}
	longest := slices.MaxFunc(slices.Collect(maps.Values(n.members)), func(a, b *member) int { return cmp.Compare(a.quiet, b.quiet) })
	if longest.silent() {
		delete(n.members, longest.id)
	}
	return longest.silent()
}

// presence is what is known of whether a replica runs.
type presence int

const (
	present presence = iota // it has been heard lately, or all may have lost NATS for a moment
	silent
	gone // it has never been heard, or not for long
)

// state reports whether NATS is connected, and the presence of a replica.
func (n *Node) state(id string) (connected bool, p presence) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	switch m := n.members[id]; {
	case m == nil && n.fresh == 0, m != nil && m.quiet > absentAfter:
		p = gone
	case m != nil && m.silent():
		p = silent
	}
	return n.connectedLocked(), p
}

// candidates returns the replicas that may go on with a session of a server, by the weight
// that each has for its id: all replicas find the same order.
func (n *Node) candidates(server, id string) (ids []string) {
	n.mu.RLock()
	for _, m := range n.members {
		if l, ok := m.Servers[server]; ok && !l.Draining && !m.silent() && !m.Joining {
			ids = append(ids, m.id)
		}
	}
	n.mu.RUnlock()
	weight := func(replica string) string {
		sum := sha256.Sum256([]byte(id + replica))
		return string(sum[:])
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(weight(a), weight(b)) })
	return ids
}

// Replicas returns what is known of the replicas, this one first and the others by name.
func (n *Node) Replicas() []front.Replica {
	n.mu.RLock()
	defer n.mu.RUnlock()
	all := []front.Replica{n.members[n.id].replica()}
	for _, m := range n.members {
		if m.id != n.id && !m.Leaving && m.quiet <= shownFor {
			all = append(all, m.replica())
		}
	}
	slices.SortFunc(all[1:], func(a, b front.Replica) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}
