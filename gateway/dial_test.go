package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// localClient is a client of Gateway.Dial. It records what it gets: the request that it came with, and its short form.
type localClient struct {
	t    testing.TB
	conn jsonrpc.Relay

	mu    sync.Mutex
	got   []string
	ids   []jsonrpc.ID // of the requests of the server
	ended error
}

// dialLocal opens a connection for a client; nil for the program itself.
func dialLocal(t testing.TB, g *gateway.Gateway, a *asker.Asker) *localClient {
	t.Helper()
	ctx := t.Context()
	if a != nil {
		ctx = asker.NewContext(ctx, a)
	}
	conn, err := g.Dial(ctx)
	must(t, err)
	l := &localClient{t: t, conn: conn.(jsonrpc.Relay)}
	l.conn.PushFor(l.receive)
	return l
}

func (l *localClient) receive(msg []byte, request jsonrpc.ID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.ended = errors.Join(l.ended, err)
		return
	}
	m, err := jsonrpc.Parse(msg)
	must(l.t, err)
	what := describeMessage(l.t, m)
	if m.Kind != jsonrpc.Response {
		what = fmt.Sprintf("for %q: %s %s", request, what, m.Token.Value)
	}
	if m.Kind == jsonrpc.Request {
		l.ids = append(l.ids, m.ID)
	}
	l.got = append(l.got, what)
}

func (l *localClient) send(msgs ...string) {
	l.t.Helper()
	for _, msg := range msgs {
		must(l.t, l.conn.Send([]byte(msg)))
	}
}

// want expects exactly these messages since the last call. A final * matches anything.
func (l *localClient) want(want ...string) {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	got := l.got
	l.got = nil
	l.mu.Unlock()
	(&peer{t: l.t}).compare(got, want)
}

// close ends the connection, of which nothing may be left.
func (l *localClient) close(g *gateway.Gateway, want error) {
	l.t.Helper()
	must(l.t, l.conn.Close())
	must(l.t, l.conn.Close())
	equal(l.t, "open connections", g.Connections(), 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	equal(l.t, "the final error", fmt.Sprint(l.ended), fmt.Sprint(want))
}

// A client in this process has its lists from memory while the server boots, and calls wait for the boot. The process
// ends when it is idle, and nothing is left after Close.
func TestDialIsAConnectionAsOthersAre(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(map[string]string{"tools/list": `{"tools": [ ]}`}), dial: laterIn(8 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		equal(t, "series before the first Dial", seriesOf(t, g, "mcp_sse_connections")[`{transport="in-process"}`], 0)
		l := dialLocal(t, g, nil)
		l.send(initialize("0", "2025-11-25", `{"roots":{}}`), initialized, request("1", "tools/list"), request(`"2"`, "tools/call"))
		l.want("0 "+resultWith(withLists), `1 {"tools": [ ]}`)
		equal(t, "open connections", seriesOf(t, g, "mcp_sse_connections")[`{transport="in-process"}`], 1)
		l.send(request("3", "tools/list"))
		l.want(`3 {"tools": [ ]}`)
		time.Sleep(9 * time.Second)
		l.want(answered(`"2"`, 2, "tools/call"))

		time.Sleep(11 * time.Minute)
		equal(t, "sessions of an idle client", u.open(), 0)
		l.send(request("4", "tools/list"), request("5", "tools/call"))
		l.want(`4 {"tools": [ ]}`)
		time.Sleep(9 * time.Second)
		l.want(answered("5", 3, "tools/call"))
		l.close(g, jsonrpc.ErrClosed)
		ssetest.WantError(t, "Send after Close", l.conn.Send([]byte(initialized)), jsonrpc.ErrClosed)
		synctest.Wait()
		equal(t, "sessions after Close", u.open(), 0)
		equal(t, "open connections", seriesOf(t, g, "mcp_sse_connections")[`{transport="in-process"}`], 0)
	})
}

// Progress comes under the client's token, a question with the request that it belongs to as far as the server tells,
// and a request that the client has cancelled is answered: a POST in front has to end.
func TestDialCarriesAllKindsOfMessages(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		switch m.Method {
		case "tools/call":
			s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(m.Token.Value) + `,"progress":1}}`)
			s.say(request(`"q"`, "roots/list"))
		case "slow":
			return true
		}
		return false
	}}
	// The client's own initialize comes first: a synthetic one declares no roots, so a second session would follow.
	ownFirst := gateway.Settings{AnnounceDelay: time.Second}
	inFakeTime(t, u, ownFirst, func(t *testing.T, g *gateway.Gateway) {
		l := dialLocal(t, g, nil)
		l.send(initialize("0", "2025-11-25", `{"roots":{}}`), initialized)
		l.want("0 " + serverResult)
		call, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"_meta":{"progressToken":"t"}}}`))
		must(t, err)
		must(t, l.conn.SendRequest(call, 71))
		l.want(`for "71": notifications/progress 71`, `for "": request roots/list *`, answered("71", 1, "tools/call"))
		l.send(`{"jsonrpc":"2.0","id":` + string(l.ids[0]) + `,"result":{"roots":[]}}`)
		synctest.Wait()
		equal(t, "the last message of the client", u.session(t, 1).last(), `{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}`)

		l.send(request("72", "slow"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":72}}`)
		time.Sleep(3 * time.Second)
		wantText(t, "what the server got", u.session(t, 1).last(), "notifications/cancelled")
		l.want("72 cancelled retryable=false")

		l.send(request("73", "slow"), request("73", "tools/list"), `{"jsonrpc":"2.0","id":74,"ID":75,"method":"tools/list"}`)
		l.want("null duplicate_id retryable=true", "74 error -32600")
		if err := l.conn.Send([]byte("hello")); err == nil {
			t.Error("Send took what is no message")
		}
		l.close(g, jsonrpc.ErrClosed)
	})
}

// A client that has not pushed receives by Recv. Where it leaves too much unread, it loses the connection.
func TestDialWithRecv(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		conn, err := g.Dial(t.Context())
		must(t, err)
		for id := range 3 {
			must(t, conn.Send([]byte(request(fmt.Sprint(id), "tools/list"))))
		}
		for id := range 3 {
			got, err := conn.Recv()
			must(t, err)
			wantText(t, "answer", string(got), fmt.Sprintf(`"id":%d,`, id))
		}
		time.AfterFunc(time.Minute, func() { _ = conn.Close() })
		_, err = conn.Recv()
		ssetest.WantError(t, "Recv", err, jsonrpc.ErrClosed)

		conn, err = g.Dial(t.Context())
		must(t, err)
		huge := []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + strings.Repeat("x", 6<<20) + `"}}`)
		for _, c := range g.Registry().All() {
			for range 3 {
				connstate.ForHandler{Connection: c}.SendNow("", huge)
			}
		}
		_, err = conn.Recv()
		wantText(t, "error", err, "over 16 MiB of messages were not read")
		equal(t, "open connections", g.Connections(), 0)
	})
}

// The gateway calls a client in one goroutine at a time. A message that the client sends inside such a call is answered
// after the call.
func TestDialCallsItsClientInTurn(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		conn, err := g.Dial(t.Context())
		must(t, err)
		const requests = 100
		var calls, answers atomic.Int32
		conn.(jsonrpc.Relay).PushFor(func(msg []byte, request jsonrpc.ID, err error) {
			if calls.Add(1) > 1 {
				t.Error("two calls at a time")
			}
			if err == nil {
				answers.Add(1)
				if len(request) < 4 {
					must(t, conn.Send([]byte(`{"jsonrpc":"2.0","id":1`+string(request)+`00,"method":"ping"}`)))
				}
				time.Sleep(time.Millisecond)
			}
			calls.Add(-1)
		})
		var senders sync.WaitGroup
		for id := range requests {
			senders.Go(func() { must(t, conn.Send([]byte(request(fmt.Sprint(id), []string{"ping", "tools/list"}[id%2])))) })
		}
		senders.Wait()
		time.Sleep(time.Second)
		equal(t, "answers", answers.Load(), 2*requests)
		must(t, conn.Close())
	})
}

// The client of a connection of Dial learns once why it ended, whichever side ends it.
func TestDialEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(g *gateway.Gateway)
		want string
	}{
		"the gateway drains": {func(g *gateway.Gateway) { <-shutdown(g, time.Minute) }, "the gateway is shutting down"},
		"its principal has gone": {func(g *gateway.Gateway) { g.Revoke(func(principal string) bool { return principal == "alice" }) },
			"the gateway closed the connection: revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
				l := dialLocal(t, g, &asker.Asker{Principal: "alice"})
				l.send(request("1", "tools/list"))
				l.want(answered("1", 1, "tools/list"))
				test.end(g)
				wantText(t, "Send", l.conn.Send([]byte(request("2", "ping"))), test.want)
				l.close(g, errors.New(test.want))
			})
		})
	}
}

func TestDialIsRefused(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{MaxConnections: 1, Name: "docs"}, func(t *testing.T, g *gateway.Gateway) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := g.Dial(ctx)
		ssetest.WantError(t, "Dial", err, context.Canceled)
		l := dialLocal(t, g, nil)
		_, err = g.Dial(t.Context())
		wantText(t, "error", err, `dial the server "docs": too many connections: the limit is 1`)
		l.close(g, jsonrpc.ErrClosed)
		g.Drain()
		_, err = g.Dial(t.Context())
		wantText(t, "error", err, `dial the server "docs": the gateway is shutting down`)
	})
}

// The limits of one address do not count clients in this process, and lines that the gateway in front writes are not
// written twice.
func TestDialIsNotCountedTwice(t *testing.T) {
	var log, audit ssetest.Output
	opts := gateway.Options{MaxConnectionsPerIP: 1, ConnectRate: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Audit: slog.New(slog.NewTextHandler(&audit, nil)), Reauthenticate: true,
		Authenticate: func(*http.Request) (string, error) { return "", errors.New("it is for another audience") }}
	inFakeTime(t, &server{handle: on("tools/call", late(10*time.Second))}, opts, func(t *testing.T, g *gateway.Gateway) {
		addr := netip.MustParseAddr("192.0.2.7")
		for range 20 {
			l := dialLocal(t, g, &asker.Asker{Addr: addr})
			l.send(request("1", "tools/call"))
			defer func() { must(t, l.conn.Close()) }()
		}
		time.Sleep(time.Minute)
		equal(t, "open connections", g.Connections(), 20)
		other := connect(t, g, connstate.Client{Addr: addr, Transport: connstate.TransportSSE})
		_, err := g.Registry().Open(connstate.Client{Addr: addr})
		wantText(t, "error", err, "connections from your address")
		other.c.Close(connstate.ClosedClient)
		equal(t, "the audit log", audit.String(), "")
		for _, line := range []string{"connection opened", "connection closed", "mcp POST slow"} {
			if strings.Contains(log.String(), line) {
				t.Errorf("the log has %q", line)
			}
		}
	})
}

// dialKeeper is an upstream that keeps the contexts of its Dial.
type dialKeeper struct {
	*server
	dials []context.Context
}

func (s *dialKeeper) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	s.dials = append(s.dials, ctx)
	return s.server.Dial(ctx)
}

// A gateway tells the gateway behind it which client a session is for. Each of the two passes the headers that its own
// options name.
func TestDialKnowsForWhom(t *testing.T) {
	up := &dialKeeper{server: &server{}}
	withFront(t, up, gateway.Settings{Options: gateway.Options{PassRequest: &gateway.PassRequest{Headers: []string{"x-b"}}}}, func(t *testing.T, front, member *gateway.Gateway) {
		client := plain
		client.Principal, client.Addr, client.Local, client.UserAgent = "alice", netip.MustParseAddr("192.0.2.7"), true, "agent/1"
		client.Header = http.Header{"X-A": {"1"}, "X-B": {"2"}}
		p := connect(t, front, client)
		p.served("1", 1, "tools/list")

		got := member.Snapshot()[0]
		equal(t, "the client of the member", []string{string(got.Transport), got.Principal, got.Remote, got.UserAgent},
			[]string{"in-process", "alice", "192.0.2.7", "agent/1"})
		from, ok := caller.FromContext(up.dials[0])
		if !ok || from.Principal != "alice" || from.Header.Get("X-B") != "2" || from.Header.Get("X-A") != "" {
			t.Errorf("the caller of the server is %+v, want alice with the header X-B", from)
		}
		a := asker.FromContext(up.dials[0])
		if a == nil || !a.Local || a.Principal != "alice" {
			t.Fatalf("the server of the member is asked by %+v, want alice on this machine", a)
		}
		p.c.Renew("newest")
		equal(t, "credentials of the newest request", a.Credentials(), "newest")
	})
}

// telling is a server that tells which request each message came with: the one that its params name.
type telling struct{ *server }

// tellingSession is a session of it.
type tellingSession struct{ *serverSession }

var _ jsonrpc.Attributed = tellingSession{}

func (s telling) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	conn, err := s.server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return tellingSession{conn.(*serverSession)}, nil
}

func (s tellingSession) RecvFor() ([]byte, jsonrpc.ID, error) {
	msg, err := s.Recv()
	if err != nil {
		return nil, "", err
	}
	m, err := jsonrpc.Parse(msg)
	return msg, jsonrpc.ID(m.Param("of").Value), err
}

// withFront runs a test in fake time with a gateway whose upstream is another gateway, in front of up.
func withFront(t *testing.T, up upstream.Upstream, of gateway.Settings, test func(t *testing.T, front, member *gateway.Gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		of.AnnounceDelay = -1
		member, err := gateway.NewWith(up, of)
		must(t, err)
		front, err := gateway.NewWith(member, gateway.Settings{AnnounceDelay: -1, Options: gateway.Options{ForwardHeaders: []string{"X-A", "X-B"}}})
		must(t, err)
		defer func() {
			for _, c := range front.Registry().All() {
				c.Close("test over")
			}
			synctest.Wait()
			equal(t, "connections of the member", member.Connections(), 0)
			equal(t, "error", errors.Join(<-shutdown(front, time.Minute), <-shutdown(member, time.Minute)), nil)
			equal(t, "bytes are held after the end", metric(t, front, "mcp_sse_held_bytes")+metric(t, member, "mcp_sse_held_bytes"), 0)
		}()
		test(t, front, member)
	})
}

// A question reaches the client with the call that it belongs to, through both gateways.
func TestQuestionOfAMemberKnowsItsCall(t *testing.T) {
	u := &server{handle: on("tools/call", func(s *serverSession, m *jsonrpc.Message) {
		if m.Param("asks").Value != nil {
			s.say(`{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"of":` + string(m.ID) + `}}`)
		}
	})}
	withFront(t, telling{u}, gateway.Settings{}, func(t *testing.T, front, _ *gateway.Gateway) {
		p := connect(t, front, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), initialized)
		p.want("0 " + serverResult)
		p.post(request("1", "tools/call"), `{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"asks":true}}`)
		synctest.Wait()
		p.mu.Lock()
		related := p.got[0].Related
		p.mu.Unlock()
		equal(t, "the question came with", related, `"two"`)
		p.want("request roots/list")
		p.post(`{"jsonrpc":"2.0","id":` + string(p.lastRequest(t)) + `,"result":{"roots":[]}}`)
		synctest.Wait()
		var all []string // of each session: the client's initialize may replace that of the gateway
		for n := range u.starts() {
			all = append(all, u.session(t, n+1).texts()...)
		}
		wantText(t, "the answer", strings.Join(all, "\n"), `{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}`)
	})
}

// A client that does not read delays no other client of a shared member.
func TestStalledClientDelaysNoOtherOfASharedMember(t *testing.T) {
	u := &server{capabilities: withLists}
	withFront(t, u, gateway.Settings{Options: gateway.Options{Sessions: gateway.SessionsShared}}, func(t *testing.T, front, _ *gateway.Gateway) {
		stalled, other := connectSlow(t, front, plain, time.Hour), connect(t, front, plain)
		for _, p := range []*peer{stalled, other} {
			p.post(request("1", "tools/call"))
		}
		other.want(answered("1", 1, "tools/call"))
		const changes = 30
		large := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":"` + strings.Repeat("x", 1<<20) + `"}}`
		for range changes {
			u.session(t, 1).say(large)
		}
		equal(t, "what the other client gets at once", len(other.take()), changes)
		equal(t, "why the stalled one was closed", stalled.c.Reason(), connstate.ClosedSlow)
		time.Sleep(2 * time.Hour) // its last write
	})
}

// The start of a member and the work of its server have request-timeout each, behind one request of the client.
func TestCallOfAMemberThatBoots(t *testing.T) {
	u := &server{capabilities: withLists, dial: laterIn(40 * time.Second), handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "tools/call" {
			late(40*time.Second)(s, m)
			return true
		}
		return lists(nil)(s, m)
	}}
	withFront(t, u, remembering(), func(t *testing.T, front, member *gateway.Gateway) {
		learnedFrom(t, member, u, request("1", "tools/list"))
		p := connect(t, front, plain)
		p.post(request("1", "tools/list"), request("2", "tools/call"))
		p.want(`1 {"of":"tools/list"}`)
		time.Sleep(81 * time.Second)
		p.want(answered("2", 2, "tools/call"))
		p.post(request("3", "hang"))
		time.Sleep(61 * time.Second)
		p.want("3 timeout retryable=false")
	})
}

// condition returns how the server of a client is, and what is closed when that changes.
func (l *localClient) condition() (asker.Condition, <-chan struct{}) {
	synctest.Wait()
	return l.conn.(asker.Conditional).Condition()
}

// A client in this process learns how the server is without a message, and of each change.
func TestDialTellsTheCondition(t *testing.T) {
	is := func(t *testing.T, l *localClient, want asker.Condition) (changed <-chan struct{}) {
		t.Helper()
		got, changed := l.condition()
		equal(t, "condition", got, want)
		return changed
	}
	u := &server{capabilities: withLists, handle: lists(nil), dial: slow(8 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		l := dialLocal(t, g, nil)
		l.send(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
		<-is(t, l, asker.Starting)
		changed := is(t, l, asker.Up)
		time.Sleep(time.Minute)
		is(t, l, asker.Up)
		l.close(g, jsonrpc.ErrClosed)
		<-changed
		is(t, l, asker.Gone)

		l = dialLocal(t, g, nil)
		l.send(initialize("0", "2025-11-25", `{"roots":{}}`))
		is(t, l, asker.Known)
		l.send(request("1", "tools/call"))
		<-is(t, l, asker.Known)
		is(t, l, asker.Up)
		l.close(g, jsonrpc.ErrClosed)
	})
	inFakeTime(t, &server{dial: func(_ context.Context, n int) error {
		time.Sleep(time.Second)
		return failing(1)(nil, n)
	}}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		l := dialLocal(t, g, nil)
		for _, want := range []asker.Condition{asker.Starting, asker.Failed, asker.Starting} {
			<-is(t, l, want)
		}
		is(t, l, asker.Up)
		l.close(g, jsonrpc.ErrClosed)
	})
}

// A client in this process is told of changed lists although the server does not promise that: a view promises it
// always. Other clients are not told.
func TestDialIsAlwaysToldOfChangedLists(t *testing.T) {
	const changed = "notifications/tools/list_changed"
	ofSession := func(s *serverSession, m *jsonrpc.Message) bool {
		return lists(map[string]string{"tools/list": fmt.Sprintf(`{"of":%d}`, s.n)})(s, m)
	}
	shared := remembering()
	shared.Sessions = gateway.SessionsShared
	for name, test := range map[string]struct {
		opts   gateway.Settings
		change func(s *serverSession) // of the server, in the last session
	}{
		"the session differs from memory": {remembering(), func(*serverSession) {}},
		"the session is lost":             {withHold, (*serverSession).die},
		"a shared server says so, though it has not declared that": {shared, func(s *serverSession) {
			s.say(`{"jsonrpc":"2.0","method":"` + changed + `"}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: `{"tools":{}}`, handle: ofSession}
			inFakeTime(t, u, test.opts, func(t *testing.T, g *gateway.Gateway) {
				learned(t, g, u)
				p, l := connect(t, g, plain), dialLocal(t, g, nil)
				for _, m := range []string{initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"), request("2", "tools/call")} {
					p.post(m)
					l.send(m)
					time.Sleep(time.Second)
				}
				test.change(u.session(t, u.starts()))
				test.change(u.session(t, max(1, u.starts()-1)))
				time.Sleep(time.Second)
				p.want("0 *", "1 *", "2 *")
				l.mu.Lock()
				got := slices.DeleteFunc(slices.Clone(l.got), func(m string) bool { return !strings.HasPrefix(m, "for ") }) // no answers
				l.mu.Unlock()
				if want := `for "": ` + changed + " "; len(got) == 0 || slices.ContainsFunc(got, func(m string) bool { return m != want }) {
					t.Errorf("the client in this process was told %q, want %q", got, want)
				}
				p.c.Close(connstate.ClosedClient)
				synctest.Wait()
				l.close(g, jsonrpc.ErrClosed)
			})
		})
	}
}
