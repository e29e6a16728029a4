package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
)

const (
	maxMembers  = 4096
	silentAfter = 4  // ticks without a heartbeat
	cutAfter    = 2  // ticks without one of this replica's own: before it finds others silent
	shownFor    = 60 // ticks that a silent replica is shown
	maxServers  = 1024
	// maxOrigins bounds the origins in a heartbeat, so that it stays below 128 KiB.
	maxOrigins = 8192
	// seenNumbers are how many numbers of exchanges of one replica are remembered.
	seenNumbers = 1 << 16
)

// Flags of a heartbeat.
const (
	joining byte = 1 << iota // the replica does not serve yet
	leaving
)

// member is what is known of a replica.
type member struct {
	name, id string
	beat     uint64 // number of the last heartbeat
	flags    byte
	quiet    int // ticks since then, while NATS was connected
	usage    map[string]usage
	seen     numbers
}

type usage struct {
	connstate.Usage
	draining bool
}

// silent reports whether the member may be gone.
func (m *member) silent() bool { return m.quiet > silentAfter || m.flags&leaving != 0 }

// open reports whether the member takes new connections of a server.
func (m *member) open(server string) bool {
	u, ok := m.usage[server]
	return ok && !u.draining && !m.silent() && m.flags&joining == 0
}

// numbers are those of exchanges that a replica has begun here.
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

// encodeHeartbeat returns the payload of a heartbeat.
func encodeHeartbeat(name string, flags byte, servers map[string]usage) []byte {
	b := appendText([]byte{flags}, name)
	left := maxOrigins
	b = binary.AppendUvarint(b, uint64(len(servers)))
	for server, u := range servers {
		b = binary.AppendUvarint(appendText(b, server), uint64(u.Connections))
		draining := byte(0)
		if u.draining {
			draining = 1
		}
		origins := u.Origins[:min(len(u.Origins), left)]
		left -= len(origins)
		b = binary.AppendUvarint(append(b, draining), uint64(len(origins)))
		for _, o := range origins {
			b = binary.BigEndian.AppendUint64(b, o.Origin)
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(o.Open)), uint64(o.Opened))
		}
	}
	return b
}

// decodeHeartbeat reads the payload of a heartbeat into m. It reports false, and m is of no
// use, if that is not one.
func (m *member) decodeHeartbeat(payload []byte) bool {
	r := &reader{rest: payload}
	if flags := r.bytes(1); flags != nil {
		m.flags = flags[0]
	}
	m.name, m.usage = r.text(), make(map[string]usage)
	servers := r.number()
	for ; servers > 0 && len(m.usage) < maxServers && !r.bad; servers-- {
		var u usage
		server := r.text()
		u.Connections = r.number()
		draining := r.bytes(1)
		u.draining = draining != nil && draining[0] != 0
		for n := r.number(); n > 0 && len(u.Origins) < maxOrigins && !r.bad; n-- {
			if hash := r.bytes(8); hash != nil {
				o := connstate.OriginUsage{Origin: binary.BigEndian.Uint64(hash)}
				o.Open, o.Opened = r.number(), r.number()
				u.Origins = append(u.Origins, o)
			}
		}
		m.usage[server] = u
	}
	return !r.bad
}

// heard takes a heartbeat.
func (n *Node) heard(f *frame) {
	var next member
	if !next.decodeHeartbeat(f.payload) {
		return
	}
	n.mu.Lock()
	m := n.members[f.from]
	if m != nil && f.number <= m.beat || m == nil && !n.makeRoomLocked() {
		n.mu.Unlock()
		return // it came late, or again
	}
	if m == nil {
		m = &member{id: f.from}
		n.members[m.id] = m
	}
	back := m.id == n.id && m.quiet > cutAfter
	m.name, m.flags, m.usage, m.beat, m.quiet = next.name, next.flags, next.usage, f.number, 0
	if m.id != n.id {
		n.countOpenedLocked(m)
	}
	left := m.flags&leaving != 0
	n.mu.Unlock()
	switch {
	case left:
		n.lose(m.id)
	case back:
		n.returned()
	}
}

// makeRoomLocked makes room for another member, in the place of one that is silent.
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

// countOpenedLocked notes what the origins of a member have opened, for the next tick.
func (n *Node) countOpenedLocked(m *member) {
	for server, u := range m.usage {
		if n.opened[server] == nil {
			n.opened[server] = make(map[uint64]int)
		}
		for _, o := range u.Origins {
			if o.Opened > 0 {
				n.opened[server][o.Origin] += o.Opened
			}
		}
	}
}

// elsewhereLocked returns what the other replicas use of a server, and what they have opened
// since the last call.
func (n *Node) elsewhereLocked(server string) (sum connstate.Usage) {
	origins := make(map[uint64]connstate.OriginUsage)
	for hash, opened := range n.opened[server] {
		origins[hash] = connstate.OriginUsage{Origin: hash, Opened: opened}
	}
	delete(n.opened, server)
	for _, m := range n.members {
		if m.id == n.id || m.silent() {
			continue
		}
		sum.Connections += m.usage[server].Connections
		for _, o := range m.usage[server].Origins {
			if o.Open > 0 {
				all := origins[o.Origin]
				all.Origin, all.Open = o.Origin, all.Open+o.Open
				origins[o.Origin] = all
			}
		}
	}
	sum.Origins = slices.Collect(maps.Values(origins))
	return sum
}

// alive reports whether a replica that receives nothing may only have lost NATS for a moment.
func (n *Node) alive(id string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	m := n.members[id]
	return m != nil && !m.silent() || m == nil && n.fresh > 0
}

// isSilent reports whether nothing has been heard for a while of a replica that was known.
func (n *Node) isSilent(id string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	m := n.members[id]
	return m != nil && m.silent()
}

// candidates returns the replicas that may go on with a session of a server, by the weight
// that each has for its id: each replica has the same order, and a session moves only if its
// replica is gone.
func (n *Node) candidates(server, id string) (ids []string) {
	n.mu.RLock()
	for _, m := range n.members {
		if m.open(server) {
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
		if m.id != n.id && m.flags&leaving == 0 && m.quiet <= shownFor {
			all = append(all, m.replica())
		}
	}
	slices.SortFunc(all[1:], func(a, b front.Replica) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}

func (m *member) replica() front.Replica {
	r := front.Replica{Name: m.name, ID: m.id, Silent: m.silent()}
	for _, u := range m.usage {
		r.Connections += u.Connections
		r.Draining = r.Draining || u.draining
	}
	return r
}
