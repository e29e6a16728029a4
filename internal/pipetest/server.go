// Package pipetest serves HTTP without sockets, so that tests can fake time: a write to a
// client that does not read waits at once, as behind a zero window.
package pipetest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// listener accepts the server's ends of pipes.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }

// Server is a real HTTP server on pipes, and a client of it.
type Server struct {
	*http.Server
	// Client sends its requests to the server, whatever their host.
	Client *http.Client

	listener *listener
}

// Serve starts a server inside a synctest bubble. The test stops it. nil protocols are
// those of net/http; set, which may be nil, changes the server before it starts.
func Serve(h http.Handler, protocols *http.Protocols, set func(*http.Server)) *Server {
	s := &Server{
		Server:   &http.Server{Handler: h, Protocols: protocols},
		listener: &listener{conns: make(chan net.Conn), done: make(chan struct{})},
	}
	if set != nil {
		set(s.Server)
	}
	go func() { _ = s.Server.Serve(s.listener) }() // ends with Stop
	s.Client = &http.Client{Transport: &http.Transport{
		Protocols:   protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.Dial(), nil },
	}}
	return s
}

// Dial returns the client's end of a new connection.
func (s *Server) Dial() net.Conn {
	client, server := net.Pipe()
	s.listener.conns <- server
	return client
}

// Stop ends the server and its connections.
func (s *Server) Stop() {
	s.Client.CloseIdleConnections()
	_ = s.Server.Close()
	time.Sleep(time.Second) // faked: net/http lingers before it closes after a refused body
}
