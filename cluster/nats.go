package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// questions returns the subject on which a replica answers that it lives.
func (n *node) questions(replica string) string { return n.prefix + "r." + replica + ".q" }

// adopted returns the subject on which the replica that serves a session is found.
func (n *node) adopted(server, id string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + id))
	return fmt.Sprintf("%sid.%x", n.prefix, sum[:16])
}

// connect connects to NATS. Errors do not have the URL, which may have a password.
func (n *node) connect(ctx context.Context, o Options) (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name("mcp-sse " + o.Replica), nats.CustomInboxPrefix(n.prefix + "r." + n.id + ".i"),
		nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.PingInterval(2 * time.Second), nats.FlusherTimeout(2 * time.Second), nats.ReconnectOnFlusherError(),
		nats.NoCallbacksAfterClientClose(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			n.down.Store(true)
			n.log.Warn("NATS disconnected", "err", err)
		}),
		nats.ReconnectHandler(n.returned),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { n.log.Warn("NATS error", "err", err) }),
	}
	if o.Credentials != "" {
		if _, err := os.Stat(o.Credentials); err != nil {
			return nil, fmt.Errorf("credentials of NATS: %w", err)
		}
		options = append(options, nats.UserCredentials(o.Credentials))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		nc, err := nats.Connect(o.URL, append(options, o.NATS...)...)
		if err == nil {
			return nc, nil
		}
		refusals := []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked}
		if slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) }) {
			return nil, fmt.Errorf("NATS refuses access: %w: check the user in its URL, and the credentials", err)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("NATS cannot be reached: %w: check its URL, and that it runs", err)
		}
	}
}

// returned begins anew to count who is silent.
func (n *node) returned(*nats.Conn) {
	n.log.Info("NATS connected again")
	n.down.Store(false)
	n.mu.Lock()
	for _, m := range n.members {
		if m == n.self || !m.silent() {
			m.quiet = 0
		}
	}
	n.mu.Unlock()
}

// dispatch takes a message to this replica or to all. It does not wait.
func (n *node) dispatch(m *nats.Msg) {
	f, ok := n.sealer.open(m.Data)
	switch {
	case !ok:
		n.log.Warn("NATS message refused: another key, or another program uses the cluster's subjects")
	case f.to != n.id && f.to != everyone:
	case f.kind == kindHeartbeat:
		n.heard(&f)
	case f.kind == kindAsk:
		_ = m.Respond(n.sealer.seal(&frame{kind: kindHere, to: f.from, from: n.id, number: f.number}))
	}
}

// ask returns the replica that subscribes to a subject, within 7 seconds. The error is
// nats.ErrNoResponders if nobody subscribes, and nats.ErrTimeout if no replica answers: others may
// subscribe that only listen.
func (n *node) ask(subject string) (replica string, err error) {
	f := &frame{kind: kindAsk, to: everyone, from: n.id, number: rand.Uint64()}
	m, err := n.nc.Request(subject, n.sealer.seal(f), time.Second)
	if errors.Is(err, nats.ErrTimeout) { // who was leaving the subject does not answer; who is slow, later
		m, err = n.nc.Request(subject, n.sealer.seal(f), 6*time.Second)
	}
	if err != nil {
		return "", err
	}
	here, ok := n.sealer.open(m.Data)
	if !ok || here.kind != kindHere || here.to != n.id || here.number != f.number {
		return "", errors.New("the answer is not one of this cluster")
	}
	return here.from, nil
}

// run does what is due each second, and answers who asks for adopted sessions.
func (n *node) run() {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for n.tick(); ; {
		select {
		case <-n.done:
			return
		case <-ticks.C:
			n.tick()
		case m := <-n.asks:
			n.dispatch(m)
		}
	}
}

func (n *node) tick() {
	n.shareUsage()
	n.beat(func(self *member) { self.quiet++ })
	n.endStreams()
	n.mu.Lock()
	connected, living, idle, watched := n.connectedLocked(), 0, false, make(map[string]bool)
	for f := range n.flights {
		watched[f.to] = true
	}
	for _, m := range n.members {
		if connected && m != n.self {
			m.quiet++
		}
		now := m.quiet == silentAfter+1
		idle = idle || now || m.Leaving && m.quiet <= silentAfter // requests to it may have ended since it said so
		switch {
		case m == n.self || !m.silent():
			living++
		case connected && !m.Joining && (now || watched[m.id] && !m.checked): // one that joins has been refused
			m.checked = true
			silent := *m // heartbeats change m
			n.running.Go(func() { n.check(silent, now) })
		}
	}
	n.mu.Unlock()
	if idle {
		n.transport.CloseIdleConnections() // those to a replica that has left, or may never answer on them
	}
	n.metrics.Now(living, connected)
}

// check ends the flights to a silent replica unless it lives: it may only be cut from NATS. Now says that
// it has just become silent. It returns after dialTimeout at the latest.
func (n *node) check(m member, now bool) {
	conn, err := n.dial(context.Background(), m.id)
	if err == nil {
		_ = conn.Close()
	}
	n.mu.Lock()
	if same := n.members[m.id]; same != nil {
		same.checked = false
	}
	n.mu.Unlock()
	ended := 0
	if err != nil {
		ended = n.endFlights(err, func(f *flight) bool { return f.to == m.id })
	}
	switch {
	case now && m.Leaving:
		n.log.Info("replica left", "replica", m.Name, "requests", ended)
	case now:
		n.log.Warn("replica lost", "replica", m.Name, "requests", ended)
	}
}

// endStreams ends those that others serve for servers that this replica serves no more; while it
// drains, some of them each time.
func (n *node) endStreams() {
	n.endFlights(errDraining, func(f *flight) bool {
		if !f.stream {
			return false
		}
		part, _ := n.part(f.server, "")
		return part == nil || part.Draining() && rand.N(4) == 0
	})
}

// endFlights ends some flights, and returns how many.
func (n *node) endFlights(why error, which func(f *flight) bool) (ended int) {
	n.mu.RLock()
	all := slices.Collect(maps.Keys(n.flights))
	n.mu.RUnlock()
	for _, f := range all {
		if which(f) {
			f.end(why)
			ended++
		}
	}
	return ended
}

// shareUsage notes what the parts use, for the next heartbeat, and tells them what other replicas do.
func (n *node) shareUsage() {
	n.mu.RLock()
	parts := maps.Clone(n.parts)
	n.mu.RUnlock()
	servers, others := make(map[string]load), make(map[string]connstate.Usage)
	for server, list := range parts {
		l := load{}
		for _, p := range list {
			l.Usage, l.Draining = l.Usage.Add(p.Usage()), p.Draining()
		}
		l.Origins = l.Origins[:min(len(l.Origins), n.maxBeat/2/len(parts)/64)] // the heartbeat is one message
		servers[server] = l
	}
	n.mu.Lock()
	for _, m := range n.members {
		for server, l := range m.Servers {
			if m != n.self && !m.silent() {
				others[server] = others[server].Add(l.Usage)
			}
			for i := range l.Origins {
				l.Origins[i].Opened = 0 // is told once
			}
		}
	}
	n.self.Servers = servers
	n.mu.Unlock()
	for server, list := range parts {
		for _, p := range list {
			p.UsedElsewhere(others[server])
		}
	}
}

// beat changes what this replica tells the others, and sends it. If that is lost, the next
// heartbeat is a second away. No lock is held meanwhile: NATS may take seconds.
func (n *node) beat(change func(self *member)) {
	n.mu.Lock()
	change(n.self)
	n.number++
	f := &frame{kind: kindHeartbeat, to: everyone, from: n.id, number: n.number}
	f.payload, _ = json.Marshal(n.self.heartbeat) // it has a JSON form
	n.mu.Unlock()
	if !n.down.Load() {
		_ = n.nc.Publish(n.prefix+"hb", n.sealer.seal(f))
	}
}

// connectedLocked reports whether frames go through NATS: heartbeats of this replica come back.
func (n *node) connectedLocked() bool { return !n.down.Load() && n.self.quiet <= cutAfter }
