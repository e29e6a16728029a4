package e2e

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// proxy is a TCP proxy that can cut every connection it carries, or stop passing bytes.
type proxy struct {
	t        *testing.T
	target   string
	listener net.Listener
	wg       sync.WaitGroup
	passing  sync.RWMutex // held for writing while no byte passes

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu
	last  string                // the text after which the connections are cut; guarded by mu
	found chan struct{}         // closed when that text has passed
}

// startProxy puts a proxy in front of the stream URL and returns the URL through it.
func startProxy(t *testing.T, stream string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(stream)
	ssetest.Must(t, err)
	p := proxyTo(t, u.Host)
	u.Host = p.listener.Addr().String()
	return p, u.String()
}

// proxyTo puts a proxy in front of an address.
func proxyTo(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	p := &proxy{t: t, target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept) // ends when the listener closes
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				p.t.Errorf("proxy: %v", err)
			}
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = in.Close() // the client sees what it would see without the proxy
			continue
		}
		p.keep(in, out)
		p.wg.Go(func() { p.copy(in, out) })
		p.wg.Go(func() { p.copy(out, in) })
	}
}

// copy ends both connections when one ends.
func (p *proxy) copy(to, from net.Conn) {
	_, _ = io.Copy(&tap{p, to}, from) // a cut is what the proxy is for
	_, _ = to.Close(), from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}

func (p *proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
}

// tap is the end of one direction of a connection.
type tap struct {
	p  *proxy
	to net.Conn
}

// Write cuts all connections once it has passed on what cutAfter looks for.
func (w *tap) Write(b []byte) (int, error) {
	w.p.passing.RLock()
	n, err := w.to.Write(b)
	w.p.passing.RUnlock()
	w.p.mu.Lock()
	found := w.p.last != "" && strings.Contains(string(b), w.p.last)
	if found {
		w.p.last = ""
		close(w.p.found)
	}
	w.p.mu.Unlock()
	if found {
		w.p.cut()
	}
	return n, err
}

// cutAfter has every connection cut when this text has passed, in one write. It returns a
// channel that is closed then.
func (p *proxy) cutAfter(text string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.found = text, make(chan struct{})
	return p.found
}

// cut ends every connection at once.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}
