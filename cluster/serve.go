package cluster

import (
	"cmp"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

const (
	// maxServing bounds the requests of other replicas that are served at once.
	maxServing = 10_000
	// maxFresh bounds the connections that have not brought a request yet: whoever reaches the
	// listener can open one, but only replicas can send a request.
	maxFresh = 4096
	// handshakeTimeout bounds how long a connection may take to show that it is a replica's.
	handshakeTimeout = 10 * time.Second
	// leaveTimeout bounds how long a replica that leaves waits for the others to notice.
	leaveTimeout = 5 * time.Second
	// finishTimeout bounds how long it waits for what it serves: the gateway has drained before, and
	// only has to write the last responses.
	finishTimeout = time.Second
)

const (
	// forwardHeader has what httpcheck.Forward says of a request, as a URL query.
	forwardHeader = "Mcp-Forward"
	// refusedHeader, beside the status 421, says why a replica has not served a request: one of the
	// following words. No handler has done anything for it.
	refusedHeader = "Mcp-Forward-Refused"
	refusedGone   = "gone" // no such connection, and the replica takes no new ones
	refusedBusy   = "busy"
)

// listener is where the other replicas send requests to. Only they close connections that are not
// in use, so that no request meets the end of its connection: they keep them for less time than
// any limit here, and close them when they hear that the replica leaves.
type listener struct {
	address string // for the others
	server  *http.Server
	tcp     net.Listener

	mu      sync.Mutex // guards what follows
	states  map[net.Conn]http.ConnState
	fresh   int
	changed chan struct{} // has a value when a state has changed
}

// listen begins to listen at the address of the options. Without a host in it the others are told
// local, the address from which this replica reaches NATS.
func listen(o Options, local string, i *identity, h http.Handler, log *log.Logger) (*listener, error) {
	host := "127.0.0.1"
	if at, err := netip.ParseAddrPort(local); err == nil { // else NATS is in this process
		host = at.Addr().Unmap().String()
	}
	tcp, err := o.listen("tcp", cmp.Or(o.Address, net.JoinHostPort(host, "0")))
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(tcp.Addr().String())
	given, _, _ := net.SplitHostPort(o.Address)
	if at, err := netip.ParseAddr(given); given != "" && (err != nil || !at.IsUnspecified()) {
		host = given
	}
	l := &listener{
		address: net.JoinHostPort(host, port), tcp: tls.NewListener(tcp, i.server()),
		states: make(map[net.Conn]http.ConnState), changed: make(chan struct{}, 1),
	}
	l.server = &http.Server{Handler: h, ErrorLog: log, WriteTimeout: handshakeTimeout, ConnState: l.note}
	return l, nil
}

// serve serves until retire or close.
func (l *listener) serve() { _ = l.server.Serve(l.tcp) }

// note keeps the state of a connection.
func (l *listener) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	before, known := l.states[c]
	if known && before == http.StateNew {
		l.fresh--
	}
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(l.states, c)
	case http.StateNew:
		l.fresh++
		l.states[c] = state
	default:
		l.states[c] = state
	}
	tooMany := l.fresh > maxFresh
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	if tooMany && state == http.StateNew {
		_ = c.Close()
	}
}

// retire takes no more connections, and waits until the others have closed all: what they send
// meanwhile is refused in order. It waits for finishTimeout at most for the requests that serving
// counts, and for leaveTimeout at most for the others.
func (l *listener) retire(serving func() int) {
	_ = l.tcp.Close() // whoever is refused now has sent nothing
	finish, over, late := time.After(finishTimeout), time.After(leaveTimeout), false
	for {
		l.mu.Lock()
		open := len(l.states)
		l.mu.Unlock()
		if open == 0 || late && open <= serving() {
			return
		}
		select {
		case <-l.changed:
		case <-finish:
			late = true
		case <-over:
			return
		}
	}
}

// close ends the listener and all connections.
func (l *listener) close() { _ = l.server.Close() }

// strangers logs what net/http says of connections that are not of replicas.
type strangers struct{ n *node }

func (s strangers) Write(line []byte) (int, error) {
	s.n.log.Warn("connection refused: another key, or not a replica", "err", strings.TrimSpace(string(line)))
	return len(line), nil
}

// enter lets a request begin to be served, unless this replica leaves.
func (n *node) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leaving {
		return false
	}
	n.running.Add(1)
	n.entered.Add(1)
	return true
}

// exit is called when a request that entered is served.
func (n *node) exit() {
	n.entered.Add(-1)
	n.running.Done()
}

// serve has the handler of the server answer a request of another replica.
func (n *node) serve(w http.ResponseWriter, r *http.Request) {
	if !n.enter() {
		refuse(w, r, refusedGone)
		return
	}
	defer n.exit()
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v != http.ErrAbortHandler {
			n.log.Error("handler panicked", "err", v, "stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler)
	}()
	if r.Method != http.MethodGet { // others bound the number of streams
		defer n.serving.Add(-1)
		if n.serving.Add(1) > maxServing {
			refuse(w, r, refusedBusy)
			return
		}
	}
	to, _ := url.ParseQuery(r.Header.Get(forwardHeader)) // of Values.Encode
	part, has := n.part(to.Get("server"), to.Get("id"))
	if part == nil || !has && (part.Draining() || to.Get("open") == "true") {
		refuse(w, r, refusedGone)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // of the handshake; the handler sets its own
	own := r.WithContext(httpcheck.Forwarded(r.Context(), to.Get("principal")))
	own.Header.Del(forwardHeader)
	own.RemoteAddr, own.TLS = to.Get("addr"), nil // they are the client's
	part.Handler.ServeHTTP(w, own)
}

// Return refuses a request of another replica whose connection is gone here, as this one drains.
func (n *node) Return(w http.ResponseWriter, r *http.Request) { refuse(w, r, refusedGone) }

// refuse answers a request that no handler serves. It reads the body first, because the other
// replica reads no answer before it has sent all. The connection ends too, because this replica
// may be about to leave.
func refuse(w http.ResponseWriter, r *http.Request, why string) {
	_, _ = io.Copy(io.Discard, r.Body)
	header := w.Header()
	clear(header)
	header.Set("Connection", "close")
	header.Set(refusedHeader, why)
	w.WriteHeader(http.StatusMisdirectedRequest)
}
