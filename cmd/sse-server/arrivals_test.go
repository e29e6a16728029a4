package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
			e := &endpoint{listener: listener, arrivals: arrivals{served: make(chan struct{})}, server: &http.Server{
				Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			}}
			e.server.ConnState = e.arrivals.note
			go func() { _ = e.serve() }() // ends with closeListener
			conn, server := net.Pipe()
			listener.conns <- server
			go func() {
				e.closeListener(t.Context())
				_ = e.server.Shutdown(t.Context())
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
