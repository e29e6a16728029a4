package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// frames returns the subject of a replica for frames. NATS answers there, with the number of
// an exchange as the last part, if nobody has subscribed to where a frame goes.
func (n *Node) frames(replica, last string) string { return n.prefix + "r." + replica + ".f." + last }

// adopted returns the subject on which the replica that serves a session is found.
func (n *Node) adopted(server, id string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + id))
	return fmt.Sprintf("%sid.%x", n.prefix, sum[:16])
}

// connect connects to NATS. Errors do not have the URL, which may have a password.
func (n *Node) connect(ctx context.Context, o Options) (*nats.Conn, error) {
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
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) {
			return nil, fmt.Errorf("NATS refuses access: %w: check the user in its URL, and the credentials", err)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("NATS cannot be reached: %w: check its URL, and that it runs", err)
		}
	}
}

// returned begins anew to count who is silent, and sends again what may be lost.
func (n *Node) returned(*nats.Conn) {
	n.log.Info("NATS connected again")
	n.down.Store(false)
	n.mu.Lock()
	for _, m := range n.members {
		if m == n.self || !m.silent() {
			m.quiet = 0
		}
	}
	n.mu.Unlock()
	for _, x := range n.open() {
		x.tick(true, false)
	}
}

// dispatch takes a message to this replica or to all. It does not wait.
func (n *Node) dispatch(m *nats.Msg) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" { // NATS: nobody has subscribed
		number, _ := strconv.ParseUint(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:], 10, 64)
		if x := n.exchange(exchangeID{number: number}); x != nil {
			x.refuse()
		}
		return
	}
	f, ok := n.sealer.open(m.Data)
	switch {
	case !ok:
		n.log.Warn("NATS message refused: another key, or another program uses the cluster's subjects")
	case f.to != n.id && f.to != everyone:
	case f.kind == kindHeartbeat:
		n.heard(&f)
	case f.kind == kindAsk:
		_ = m.Respond(n.sealer.seal(&frame{kind: kindHere, to: f.from, from: n.id, number: f.number}))
	default:
		n.pass(&f)
	}
}

// pass gives a frame to its exchange.
func (n *Node) pass(f *frame) {
	id := exchangeID{f.from, f.number}
	if f.flags&fromOwner != 0 {
		id.entry = ""
	}
	x := n.exchange(id)
	switch {
	case f.kind == kindAnswered:
		for rest := f.payload; len(rest) >= 8; rest = rest[8:] {
			if x := n.exchange(exchangeID{f.from, binary.BigEndian.Uint64(rest)}); x != nil {
				x.end(errOver)
			}
		}
	case x != nil && x.peer == f.from:
		x.take(f)
	case f.kind != kindData && f.kind != kindProbe:
	case f.flags&fromOwner != 0 || !n.accept(id, f):
		n.sendReset(f.from, f.flags^fromOwner, f.number)
	}
}

func (n *Node) exchange(id exchangeID) *exchange {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.exchanges[id]
}

// open returns the exchanges.
func (n *Node) open() []*exchange {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Collect(maps.Values(n.exchanges))
}

// sendReset ends an exchange at the other side. If it is lost, the next frame from there is answered so.
func (n *Node) sendReset(to string, flags byte, number uint64) {
	_ = n.nc.Publish(n.frames(to, "q"), n.sealer.seal(&frame{kind: kindReset, flags: flags & fromOwner, to: to, from: n.id, number: number}))
}

// tell tells the owner of exchanges that their responses have come. If that is lost, it sends them again, and gets a reset.
func (n *Node) tell(owner string, answered []byte) {
	if len(answered) > 0 && !n.down.Load() {
		_ = n.nc.Publish(n.frames(owner, "q"), n.sealer.seal(&frame{kind: kindAnswered, to: owner, from: n.id, payload: answered}))
	}
}

// ask returns the replica that subscribes to a subject, within 7 seconds, or within one if it
// is gone by its heartbeats. The error is nats.ErrNoResponders if nobody subscribes, and
// nats.ErrTimeout if no replica answers: others may subscribe that only listen.
func (n *Node) ask(subject string, gone bool) (replica string, err error) {
	f := &frame{kind: kindAsk, to: everyone, from: n.id, number: rand.Uint64()}
	m, err := n.nc.Request(subject, n.sealer.seal(f), time.Second)
	if errors.Is(err, nats.ErrTimeout) && !gone { // who was leaving the subject does not answer; who is slow, later
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
func (n *Node) run() {
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

func (n *Node) tick() {
	n.shareUsage()
	n.beat(func(self *member) { self.quiet++ })
	n.mu.Lock()
	connected, tooLong := n.connectedLocked(), n.self.quiet > maxAway
	living, lost, ended, answered := 0, make(map[string]member), make(map[string]int), make(map[string][]byte)
	for _, m := range n.members {
		answered[m.id], m.answered = m.answered, nil
		if connected && m != n.self {
			m.quiet++
		}
		if m == n.self || !m.silent() {
			living++
		} else if m.quiet == silentAfter+1 && connected && !m.Joining { // else it has been refused
			lost[m.id] = *m
		}
	}
	n.mu.Unlock()
	for owner, numbers := range answered {
		n.tell(owner, numbers)
	}
	n.metrics.Now(living, connected)
	for _, x := range n.open() {
		part, _ := n.part(x.server, "")
		switch {
		case tooLong:
			x.end(errUnreachable)
		case x.stream && (part == nil || part.Draining() && rand.N(4) == 0):
			x.abort(errDraining)
		case connected && x.tick(false, lost[x.peer].id != ""):
			ended[x.peer]++
		}
		x.changed.Broadcast() // the deadline of send may have passed
	}
	for id, m := range lost {
		if m.Leaving {
			n.log.Info("replica left", "replica", m.Name, "requests", ended[id])
		} else {
			n.log.Warn("replica lost", "replica", m.Name, "requests", ended[id])
		}
	}
}

// shareUsage notes what the parts use, for the next heartbeat, and tells them what other replicas do.
func (n *Node) shareUsage() {
	n.mu.RLock()
	parts := maps.Clone(n.parts)
	n.mu.RUnlock()
	servers, others := make(map[string]load), make(map[string]connstate.Usage)
	for server, list := range parts {
		l := load{}
		for _, p := range list {
			l.Usage, l.Draining = l.Usage.Add(p.Usage()), p.Draining()
		}
		l.Origins = l.Origins[:min(len(l.Origins), n.maxPart/2/len(parts)/64)] // the heartbeat is one message
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
func (n *Node) beat(change func(self *member)) {
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
func (n *Node) connectedLocked() bool { return !n.down.Load() && n.self.quiet <= cutAfter }
