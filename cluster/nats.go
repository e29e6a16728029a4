package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

func newID() string { return rand.Text()[:idBytes] }

func formatNumber(n uint64) string { return strconv.FormatUint(n, 10) }

// frames returns the subject of a replica for frames. NATS answers frames of which the last
// part is the number of an exchange if nobody has subscribed to where they go.
func (n *Node) frames(replica, last string) string { return n.prefix + "r." + replica + ".f." + last }

// adopted returns the subject on which the replica that serves a session is found.
func (n *Node) adopted(server, id string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + id))
	return n.prefix + "id." + hex.EncodeToString(sum[:16])
}

// connect connects to NATS, for as long as ctx lasts. Errors do not have the URL, which may
// have a password.
func (n *Node) connect(ctx context.Context, o Options) (*nats.Conn, error) {
	for server := range strings.SplitSeq(o.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); err != nil || u.Host == "" {
			return nil, errors.New("the URL of NATS is not valid: write nats://host:4222, or tls://host:4222")
		}
	}
	options := []nats.Option{
		nats.Name("mcp-sse " + n.name), nats.CustomInboxPrefix(n.prefix + "r." + n.id + ".i"),
		nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.PingInterval(2 * time.Second), nats.FlusherTimeout(2 * time.Second), nats.ReconnectOnFlusherError(),
		nats.DisconnectErrHandler(n.disconnected), nats.ReconnectHandler(n.reconnected), nats.ErrorHandler(n.natsError),
	}
	if o.Credentials != "" {
		if _, err := os.Stat(o.Credentials); err != nil {
			return nil, fmt.Errorf("credentials of NATS: %w", err)
		}
		options = append(options, nats.UserCredentials(o.Credentials))
	}
	options = append(options, o.NATS...)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		nc, err := nats.Connect(o.URL, options...)
		switch {
		case err == nil:
			return nc, nil
		case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
			return nil, fmt.Errorf("NATS refuses access: %w: check the user in the URL and the credentials", err)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("NATS cannot be reached: %w: check its URL, and that it runs", err)
		}
	}
}

// flush waits until NATS has taken what is published and subscribed.
func (n *Node) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = n.nc.FlushWithContext(ctx)
}

func (n *Node) disconnected(_ *nats.Conn, err error) {
	n.mu.Lock()
	n.up = false
	closed := n.closed
	n.mu.Unlock()
	if !closed {
		n.log.Warn("NATS disconnected", "err", err)
	}
}

func (n *Node) reconnected(*nats.Conn) {
	n.log.Info("NATS connected again")
	n.mu.Lock()
	n.up = true
	n.mu.Unlock()
	n.returned()
}

func (n *Node) natsError(_ *nats.Conn, _ *nats.Subscription, err error) {
	n.log.Warn("NATS error", "err", err)
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
		n.answer(m, &f)
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

// sendReset ends an exchange at the other side.
func (n *Node) sendReset(to string, flags byte, number uint64) {
	f := &frame{kind: kindReset, flags: flags & fromOwner, to: to, from: n.id, number: number}
	_ = n.publish(n.frames(to, "q"), "", n.sealer.seal(f)) // if it is lost, the next frame from there is answered so
}

// answer tells another replica that this one runs, or serves the session that is meant.
func (n *Node) answer(m *nats.Msg, f *frame) {
	here := &frame{kind: kindHere, to: f.from, from: n.id, number: f.number}
	_ = m.Respond(n.sealer.seal(here)) // who asks waits for a time only
}

// ask returns the replica that subscribes to a subject. The error is nats.ErrNoResponders if
// there is none.
func (n *Node) ask(ctx context.Context, subject string) (replica string, err error) {
	n.mu.Lock()
	n.number++
	f := &frame{kind: kindAsk, to: everyone, from: n.id, number: n.number}
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := n.nc.RequestWithContext(ctx, subject, n.sealer.seal(f))
	if err != nil {
		return "", err
	}
	here, ok := n.sealer.open(m.Data)
	if !ok || here.kind != kindHere || here.to != n.id || here.number != f.number {
		return "", errors.New("the answer is not one of this cluster")
	}
	return here.from, nil
}
