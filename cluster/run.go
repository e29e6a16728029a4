package cluster

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
)

// maxAway is for how many ticks exchanges wait for NATS.
const maxAway = 30

// run does what is due each second, and answers who asks for adopted sessions.
func (n *Node) run(ctx context.Context) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for n.tick(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			n.tick()
		case m := <-n.asks:
			n.dispatch(m)
		}
	}
}

func (n *Node) tick() {
	used := n.usage()
	n.mu.Lock()
	n.members[n.id].usage = used
	if n.up {
		n.members[n.id].quiet++
		n.beatLocked()
	}
	connected, lost := n.connectedLocked(), []string(nil)
	if connected {
		lost, n.away, n.fresh = n.ageLocked(), 0, max(0, n.fresh-1)
	} else {
		n.away++
	}
	away, living := n.away, 0
	for _, m := range n.members {
		if !m.silent() {
			living++
		}
	}
	n.mu.Unlock()
	n.metrics.Replicas(living)
	n.metrics.Connected(connected)
	for _, id := range lost {
		n.lose(id)
	}
	for _, x := range n.open() {
		switch {
		case away > maxAway:
			x.end(errUnreachable)
		case connected:
			x.tick()
		}
		if x.stream != "" && rand.N(4) == 0 && n.draining(x.stream) {
			x.abort(errDraining)
		}
	}
	n.tellParts()
}

// ageLocked counts a tick for the other members, and returns those that are lost by it.
func (n *Node) ageLocked() (lost []string) {
	for _, m := range n.members {
		if m.id == n.id {
			continue
		}
		if m.quiet++; m.quiet == silentAfter+1 {
			lost = append(lost, m.id)
		}
	}
	return lost
}

// usage returns what the parts use.
func (n *Node) usage() map[string]usage {
	all := make(map[string]usage)
	n.eachPart(func(server string, p *front.Part) {
		u, sum := p.Usage(), all[server]
		sum.Connections += u.Connections
		sum.Origins = append(sum.Origins, u.Origins...)
		sum.draining = p.Draining()
		all[server] = sum
	})
	return all
}

// tellParts tells the parts what the other replicas use.
func (n *Node) tellParts() {
	n.mu.Lock()
	elsewhere := make(map[string]connstate.Usage)
	for server := range n.parts {
		elsewhere[server] = n.elsewhereLocked(server)
	}
	clear(n.opened)
	n.mu.Unlock()
	n.eachPart(func(server string, p *front.Part) { p.UsedElsewhere(elsewhere[server]) })
}

func (n *Node) eachPart(do func(server string, p *front.Part)) {
	n.mu.RLock()
	parts := maps.Clone(n.parts) // the lists are not changed
	n.mu.RUnlock()
	for server, list := range parts {
		for _, p := range list {
			do(server, p)
		}
	}
}

// draining reports whether this replica takes no new connections of a server.
func (n *Node) draining(server string) bool {
	part, _ := n.part(server, "")
	return part == nil || part.Draining()
}

// beatLocked sends a heartbeat.
func (n *Node) beatLocked() {
	n.beat++
	payload := encodeHeartbeat(n.name, n.flags, n.members[n.id].usage)
	f := &frame{kind: kindHeartbeat, to: everyone, from: n.id, number: n.beat, payload: payload}
	_ = n.publish(n.prefix+"hb", "", n.sealer.seal(f)) // the next one is a second away
}

// connected reports whether frames go through NATS: heartbeats of this replica come back.
func (n *Node) connected() bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.connectedLocked()
}

func (n *Node) connectedLocked() bool { return n.up && n.members[n.id].quiet <= cutAfter }

// returned begins anew to count who is silent, and sends again what may be lost.
func (n *Node) returned() {
	n.mu.Lock()
	n.fresh = silentAfter
	for _, m := range n.members {
		if m.id == n.id || !m.silent() {
			m.quiet = 0
		}
	}
	n.mu.Unlock()
	for _, x := range n.open() {
		x.resume()
	}
}

// lose ends the exchanges with a replica that is gone.
func (n *Node) lose(replica string) {
	ended := 0
	for _, x := range n.open() {
		if x.peer == replica {
			x.end(errUnreachable)
			ended++
		}
	}
	n.mu.RLock()
	m := n.members[replica]
	n.mu.RUnlock()
	if m != nil {
		n.log.Warn("replica lost", "replica", m.name, "requests", ended)
	}
}

// open returns the exchanges.
func (n *Node) open() []*exchange {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Collect(maps.Values(n.exchanges))
}
