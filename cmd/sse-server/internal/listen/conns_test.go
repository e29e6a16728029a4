package listen

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// pipes is a listener of connections that have no kernel in between.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.conns) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// A client that has connected before the server stops gets an answer to its first request,
// also if that comes a little later. One that says nothing is not waited for for long.
func TestStopAnswersThoseWhoHaveConnected(t *testing.T) {
	for after, answered := range map[time.Duration]bool{arrivalTime - time.Millisecond: true, arrivalTime + time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			listener := &pipes{conns: make(chan net.Conn)}
			c := newConns()
			c.Listener = listener
			s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
			c.watch(s)
			note := s.ConnState
			s.ConnState = func(conn net.Conn, state http.ConnState) {
				if note(conn, state); state == http.StateActive {
					time.Sleep(100 * time.Microsecond) // then net/http looks whether it shuts down
				}
			}
			e := &Endpoint{conns: c, Server: s}
			go func() { _ = e.Serve() }() // ends with stop
			conn, server := net.Pipe()
			listener.conns <- server
			go func() {
				c.stop(t.Context())
				_ = s.Shutdown(t.Context())
			}()
			time.Sleep(after)
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") // the server may have closed it
			answer, _ := io.ReadAll(conn)
			if got := strings.HasPrefix(string(answer), "HTTP/1.1 200 OK"); got != answered {
				t.Errorf("a request %v after the end: got %q", after, answer)
			}
		})
	}
}

// A new limit counts for connections that wait, and closes none.
func TestLimitOfConnectionsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{conns: make(chan net.Conn, 5)}
		c := newConns()
		c.Listener = listener
		e := &Endpoint{conns: c, Server: &http.Server{Handler: http.NotFoundHandler()}}
		c.watch(e.Server)
		var clients []net.Conn
		for range cap(listener.conns) {
			client, server := net.Pipe()
			listener.conns <- server
			clients = append(clients, client)
		}
		limit := func(n int) { c.update(func() { c.limit = n }) }
		want := func(step string, open, waiting int) {
			t.Helper()
			if synctest.Wait(); c.open != open || len(listener.conns) != waiting {
				t.Errorf("%s: %d are open and %d wait, want %d and %d", step, c.open, len(listener.conns), open, waiting)
			}
		}
		limit(2)
		go func() { _ = e.Serve() }() // ends with Close
		want("full", 2, 3)
		limit(3)
		want("one more", 3, 2)
		limit(2)
		clients[0].Close()
		want("as many as there may be", 2, 2)
		clients[1].Close()
		want("one fewer", 2, 1)
		limit(0)
		want("without a limit", 3, 0)
		_ = e.Server.Close()
		want("closed", 0, 0)
	})
}

// Whoever keeps connections open between requests keeps nobody out: the one that has been idle
// longest gives way. One with a request does not.
func TestIdleConnectionsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{conns: make(chan net.Conn, 10)}
		c := newConns()
		c.Listener, c.limit = listener, 3
		told := 0
		c.full = func() { told++ }
		hang := make(chan struct{})
		e := &Endpoint{conns: c, Server: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hang" {
				<-hang
			}
		})}}
		c.watch(e.Server)
		go func() { _ = e.Serve() }() // ends with Close
		ask := func(path string) (client net.Conn, in *bufio.Reader) {
			client, server := net.Pipe()
			listener.conns <- server
			go func() { _, _ = io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n") }()
			return client, bufio.NewReader(client)
		}
		hanging, _ := ask("/hang")
		for n := range 8 {
			client, in := ask("/")
			resp, err := http.ReadResponse(in, nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("client %d: %v", n, err)
			}
			defer client.Close()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if c.open > 3 || told != 1 {
			t.Errorf("%d are open, and the limit was told %d times", c.open, told)
		}
		close(hang)
		if resp, err := http.ReadResponse(bufio.NewReader(hanging), nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("the one with a request: %v", err)
		}
		_ = e.Server.Close()
		_ = hanging.Close()
	})
}

// Connections without a first request give way once that is late, also those with half of one.
func TestLateConnectionsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{conns: make(chan net.Conn, 10)}
		c := newConns()
		c.Listener, c.limit = listener, 3
		e := &Endpoint{conns: c, Server: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}}
		c.watch(e.Server)
		go func() { _ = e.Serve() }() // ends with Close
		for n := range 3 {
			client, server := net.Pipe()
			defer client.Close()
			listener.conns <- server
			if n > 0 {
				_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost:")
			}
		}
		synctest.Wait()
		client, server := net.Pipe()
		listener.conns <- server
		began := time.Now()
		go func() { _, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") }()
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || resp.StatusCode != http.StatusOK || time.Since(began) > arrivalTime {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		_ = e.Server.Close()
	})
}

// scarce is a listener of a process that has no descriptors left but the spare one of conns.
type scarce struct {
	pipes
	c *conns
}

func (s *scarce) Accept() (net.Conn, error) {
	hasSpare := false
	s.c.update(func() { hasSpare = s.c.spare != nil })
	if hasSpare {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return s.pipes.Accept()
}

// A process without descriptors does not let its clients wait: the spare one serves who comes,
// when there are others again.
func TestNoDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConns()
		listener := &scarce{pipes: pipes{conns: make(chan net.Conn, 10)}, c: c}
		c.Listener = listener
		e := &Endpoint{conns: c, Server: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}}
		c.watch(e.Server)
		go func() { _ = e.Serve() }() // ends with Close
		for _, device := range []string{os.DevNull, "/no/such/device"} {
			c.update(func() { c.device = device })
			client, server := net.Pipe()
			listener.conns <- server
			go func() { _, _ = io.WriteString(client, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }()
			answer, _ := io.ReadAll(client)
			if want := map[bool]string{false: "HTTP/1.1 503 ", true: "HTTP/1.1 200 "}[device == os.DevNull]; !strings.HasPrefix(string(answer), want) {
				t.Errorf("spare from %s: got %q, want %q", device, answer, want)
			}
			synctest.Wait()
		}
		_ = e.Server.Close()
	})
}

// A connection that has ended makes room, whatever it spoke.
func TestConnectionsThatEndMakeRoom(t *testing.T) {
	t.Parallel()
	hasCertificate := httptest.NewTLSServer(nil)
	hasCertificate.Close()
	pair := hasCertificate.TLS.Certificates[0]
	for scheme, set := range map[string]func(*http.Protocols, bool){
		"http": (*http.Protocols).SetHTTP1, "https": (*http.Protocols).SetHTTP2, "http ": (*http.Protocols).SetUnencryptedHTTP2,
	} {
		listener := clitest.Must(net.Listen("tcp", "127.0.0.1:0"))
		c, protocols := newConns(), new(http.Protocols)
		c.Listener = listener
		set(protocols, true)
		e := &Endpoint{conns: c, tls: scheme == "https", Server: &http.Server{
			Protocols: protocols, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
			Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		}}
		c.watch(e.Server)
		go func() { _ = e.Serve() }() // ends with Close
		transport := &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		response, err := (&http.Client{Transport: transport}).Get(e.URL())
		ssetest.Must(t, err)
		_ = response.Body.Close()
		ssetest.Want(t, "status", response.StatusCode, http.StatusOK)
		transport.CloseIdleConnections()
		c.mu.Lock()
		for c.open != 0 {
			c.change.Wait() // for good if one stays
		}
		c.mu.Unlock()
		_ = e.Server.Close()
	}
}
