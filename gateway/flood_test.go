package gateway_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// chatter makes a session send notifications all the time.
func chatter(s *serverSession, size int, every time.Duration) {
	for !s.over() {
		s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"pad":"` + strings.Repeat("x", size) + `"}}`)
		time.Sleep(every)
	}
}

// A slow client slows down a server that sends too much, and the connection becomes
// ready all the same.
func TestFloodAtTheStartDoesNotKeepTheGateShut(t *testing.T) {
	u := &server{}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "notifications/initialized" {
			go chatter(s, 10_000, 500*time.Microsecond)
			time.Sleep(10 * time.Millisecond)
		}
		return false
	}
	inFakeTime(t, u, gateway.Settings{OutboxBytes: 256 << 10}, func(t *testing.T, g *gateway.Gateway) {
		p := connectSlow(t, g, plain, time.Millisecond)
		p.post(request("1", "tools/list"))
		time.Sleep(4 * time.Second)
		p.wantState(connstate.Ready)
		p.c.Close("client")
		time.Sleep(10 * time.Second)
	})
}

// A server that never stops sending does not delay a shutdown with no request in
// flight.
func TestShutdownDoesNotWaitForAChattyServer(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		connectSlow(t, g, plain, 2*time.Millisecond)
		synctest.Wait()
		go chatter(u.session(t, 1), 10, time.Millisecond)
		time.Sleep(time.Second)
		began := time.Now()
		if err := <-shutdown(g, 15*time.Second); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Shutdown took %s of its 15 s", took)
		}
		time.Sleep(10 * time.Second)
	})
}

// Answers that a server sent before its end reach the client, even if a later message
// is the first to show the end.
func TestAnswersOnTheirWayOutliveTheServer(t *testing.T) {
	u := &server{deaf: func(s *serverSession) bool { return s.count("last") > 0 }, dial: downUntil(1000)}
	inFakeTime(t, u, gateway.Settings{OutboxBytes: 1}, func(t *testing.T, g *gateway.Gateway) {
		p := connectSlow(t, g, plain, 300*time.Millisecond)
		synctest.Wait()
		p.post(request("1", "a"), request("2", "b"), request("3", "c"), request("4", "last"))
		u.session(t, 1).die()
		p.post(request("9", "too late"))
		time.Sleep(4 * time.Second)
		got := strings.Join(p.take(), "\n")
		for id, method := range map[string]string{"1": "a", "2": "b", "3": "c", "4": "last"} {
			if !strings.Contains(got, answered(id, 1, method)) {
				t.Errorf("the answer to %s is lost", id)
			}
		}
	})
}
