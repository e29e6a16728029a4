package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// arrivalTime is how long a client that has connected may take for its first request once
// the server stops.
const arrivalTime = time.Second

// arrivals are the TCP connections of a server on which no request has come yet. When it
// shuts down, net/http closes them without an answer, also if a request is on its way.
type arrivals struct {
	conns  sync.Map      // net.Conn → nil
	served chan struct{} // closed when Serve has returned: there are no new ones
}

// note is the ConnState of the server.
func (a *arrivals) note(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		a.conns.Store(conn, nil)
	} else {
		a.conns.Delete(conn)
	}
}

// closeListener stops accepting, and waits for the first requests of the clients that have
// connected, for at most arrivalTime. With the socket unit of systemd those that connect
// from now on wait for the next process.
func (e *endpoint) closeListener(ctx context.Context) {
	_ = e.listener.Close() // what has been accepted is served
	<-e.arrivals.served
	ctx, cancel := context.WithTimeout(ctx, arrivalTime)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		none := true
		e.arrivals.conns.Range(func(any, any) bool { none = false; return false })
		if none {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
