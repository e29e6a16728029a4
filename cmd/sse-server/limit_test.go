package main

import (
	"net"
	"testing"
	"testing/synctest"
)

// endless is a listener that always has a connection.
type endless struct{ net.Listener }

func (endless) Accept() (net.Conn, error) { conn, _ := net.Pipe(); return conn, nil }
func (endless) Close() error              { return nil }

// A new limit counts for connections that wait, and closes none.
func TestLimitOfConnectionsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimitListener()
		l.Listener = endless{}
		limit := func(n int) { l.change(func() { l.limit = n }) }
		limit(2)
		var open []net.Conn
		over := false // as open
		go func() {
			for !over {
				conn, _ := l.Accept()
				open = append(open, conn)
			}
		}()
		want := func(step string, n int) {
			t.Helper()
			if synctest.Wait(); len(open) != n {
				t.Errorf("%s: %d were accepted, want %d", step, len(open), n)
			}
		}
		want("full", 2)
		limit(3)
		want("one more", 3)
		limit(2)
		open[0].Close()
		want("as many as there may be", 3)
		open[0].Close() // counts once
		want("closed twice", 3)
		open[1].Close()
		want("one fewer", 4)
		over = true
		l.Close()
		want("closed", 5)
	})
}
