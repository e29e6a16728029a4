package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// failing lists initializations that fail, by the behaviour of the server or the
// client.
type failure struct {
	server *server
	opts   gateway.Settings
	leave  time.Duration // when the client leaves; 0: it stays
	phase  string
	reason string
}

// silence is a server that never answers initialize.
func silence(_ *serverSession, m *jsonrpc.Message) bool { return m.Method == "initialize" }

func failures() map[string]failure {
	return map[string]failure{
		"hangs, the client stays":  {server: &server{handle: silence}, phase: "request_processing", reason: "timeout"},
		"hangs, the client leaves": {server: &server{handle: silence}, leave: 6 * time.Second, phase: "request_processing", reason: "timeout"},
		"exits at once": {server: &server{handle: func(s *serverSession, _ *jsonrpc.Message) bool {
			s.die()
			return true
		}}, phase: "request_processing", reason: "start_failed"},
		"exits after each start": {server: &server{handle: crashesOnceInitialized}, phase: "request_creation", reason: "gave_up"},
		"exits after each start, many attempts": {
			server: &server{handle: crashesOnceInitialized}, opts: gateway.Settings{MaxHandshakeAttempts: 12}, phase: "request_creation", reason: "start_failed",
		},
		"exits after each start, shared": {server: &server{handle: crashesOnceInitialized}, opts: settings(sharing), phase: "request_creation", reason: "start_failed"},
		"answers with an error":          {server: &server{handle: on("initialize", fails(-32603))}, phase: "request_processing", reason: "rejected"},
		"is no MCP server": {server: &server{handle: on("initialize", func(s *serverSession, m *jsonrpc.Message) {
			s.say(string(jsonrpc.NewResult(m.ID, []byte(`"hello"`))))
		})}, phase: "request_processing", reason: "bad_answer"},
		"binary missing":          {server: &server{dial: failing(1000)}, phase: "request_creation", reason: "start_failed"},
		"takes too long to start": {server: &server{dial: slow(time.Hour)}, phase: "request_creation", reason: "timeout"},
	}
}

// The documented alert fires whenever clients get no session, and the labels name the
// reason. The test uses the real output of the admin address.
func TestAlertFiresWhenInitializationFails(t *testing.T) {
	for name, f := range failures() {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, f.server, f.opts, func(t *testing.T, g *gateway.Gateway) {
				var peers []*peer
				for range 3 {
					p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage})
					peers = append(peers, p)
					if f.leave > 0 {
						time.Sleep(f.leave)
						p.c.Close("left")
					}
				}
				time.Sleep(5 * time.Minute)
				all, why := handshakes(t, g)
				if !alert(all) {
					t.Errorf("the alert is silent: %v", all)
				}
				if why[f.phase+" "+f.reason] == 0 {
					t.Errorf("no failure with phase %s and reason %s: %v", f.phase, f.reason, why)
				}
				if n := peers[0].c.Snapshot().Failures[f.phase]; n == 0 && f.opts.Sessions == 0 {
					t.Errorf("the snapshot counts %v", peers[0].c.Snapshot().Failures)
				}
				if n := f.server.open(); f.leave > 0 && n > 0 {
					t.Errorf("%d sessions are open after the failure", n)
				}
				if n := all["canceled"]; n > 0 {
					t.Errorf("%g failures count as canceled", n)
				}
			})
		})
	}
}

// Clients that come and go do not trigger the alert: neither those that get a
// session, nor those that leave before the server is up.
func TestAlertIsSilentWhenClientsComeAndGo(t *testing.T) {
	u := &server{dial: slow(2 * time.Second)}
	inFakeTime(t, u, withHold, func(t *testing.T, g *gateway.Gateway) {
		for i := range 40 {
			p := connect(t, g, plain)
			if i%2 == 0 {
				p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
			}
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			p.c.Close("left")
		}
		all, why := handshakes(t, g)
		if alert(all) || all["ok"] == 0 || all["canceled"] == 0 {
			t.Errorf("%v %v, want no alert", all, why)
		}
	})
}

// A late start is a failure, once, if the client leaves before there is a session, and none
// if there is one after all.
func TestLateStartIsAFailureWithoutASession(t *testing.T) {
	u := &server{dial: slow(20 * time.Second)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		var works *peer
		for range 2 {
			works = connect(t, g, connstate.Client{Dialect: connstate.EventMessage})
			time.Sleep(time.Second)
			works.post(request("1", "tools/list"))
			time.Sleep(10 * time.Second)
			works.want("mcp-response: auto initialization_error*", "1 initialization_error*")
			if u.starts() == 1 {
				works.c.Close("left")
			}
		}
		time.Sleep(time.Minute)
		works.wantState(connstate.Ready)
		if s := works.c.Snapshot(); s.LastFailure != nil || len(s.Failures) != 0 {
			t.Errorf("the snapshot has %+v and %v", s.LastFailure, s.Failures)
		}
		if all, why := handshakes(t, g); all["error"] != 1 || all["ok"] != 1 || all["canceled"] != 0 || why["request_processing timeout"] != 1 {
			t.Errorf("counted %v %v, want one error and one success", all, why)
		}
	})
}

// The error for a start that hangs describes that start, not the failure of the one
// before.
func TestRequestIsToldOfTheStartThatRuns(t *testing.T) {
	u := &server{dial: failing(1), handle: silence}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		time.Sleep(30 * time.Second)
		p.post(request("1", "tools/list"))
		time.Sleep(5 * time.Second)
		p.want("1 initialization_error request_processing attempt 2")
	})
}

// An announcement that the client does not take counts as a failure of its own phase.
func TestAnnouncementThatCannotBeSentIsCounted(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Settings{OutboxBytes: 1}, func(t *testing.T, g *gateway.Gateway) {
		opened, err := g.Registry().Open(connstate.Client{})
		must(t, err)
		defer g.Registry().Remove(opened)
		c := wholeOf(opened)
		defer c.Close("left")
		must(t, c.Push(connstate.Event{Name: "connection", Data: []byte("{}")}))
		c.Bind(gateway.Accept(g, opened))
		c.StartAnnounceDelay() // the stream is there, and nobody reads it
		time.Sleep(time.Second)
		if _, why := handshakes(t, g); why["response_sending send_failed"] != 1 {
			t.Errorf("counted %v", why)
		}
	})
}

// A shared start that fails counts once, not for each connection that waits.
func TestSharedStartIsCountedOnce(t *testing.T) {
	inFakeTime(t, &server{handle: silence}, sharing, func(t *testing.T, g *gateway.Gateway) {
		for range 20 {
			p := connect(t, g, plain)
			p.post(request("1", "tools/list"))
		}
		time.Sleep(60*time.Second + time.Nanosecond)
		if all, why := handshakes(t, g); all["error"] != 1 || why["request_processing timeout"] != 1 {
			t.Errorf("counted %v %v, want one timeout", all, why)
		}
	})
}

// alert computes the documented alert: errors / all > 0.1.
func alert(all map[string]float64) bool {
	var sum float64
	for _, n := range all {
		sum += n
	}
	return all["error"]/sum > 0.1
}

// handshakes returns the gateway's handshakes by result, and the failed ones by phase and
// reason.
func handshakes(t *testing.T, g *gateway.Gateway) (all, why map[string]float64) {
	t.Helper()
	all, why = map[string]float64{}, map[string]float64{}
	for labels, n := range seriesOf(t, g, "mcp_sse_handshakes_total") {
		var phase, reason, result string
		_, err := fmt.Sscanf(labels, `{phase=%q,reason=%q,result=%q`, &phase, &reason, &result)
		must(t, err)
		all[result] += n
		if result == "error" {
			why[phase+" "+reason] += n
		}
	}
	return all, why
}

// A client that leaves after its server took too long leaves a line in the log: the start ended
// with it, and nothing else would tell why.
func TestLateStartIsLoggedWhenItsClientLeaves(t *testing.T) {
	u := &server{dial: slow(time.Hour)}
	var log bytes.Buffer
	opts := gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), StartTimeout: time.Minute}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		time.Sleep(10 * time.Second)
		p.c.Close("left")
		synctest.Wait()
		if !strings.Contains(log.String(), `msg="session start failed"`) || !strings.Contains(log.String(), "reason=timeout") {
			t.Errorf("the log:\n%s", log.String())
		}
	})
}
