package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// remembering are the options of most tests here: a process ends after ten minutes without a message.
func remembering() gateway.Settings {
	return gateway.Settings{
		Options:       gateway.Options{Remember: &gateway.Remember{}},
		AnnounceDelay: 100 * time.Millisecond,
	}
}

// withLists are the capabilities of a server with all lists, which says when they change.
const withLists = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`

// resultWith is the answer of a server with these capabilities to initialize.
func resultWith(capabilities string) string {
	return strings.Replace(serverResult, `"capabilities":{}`, `"capabilities":`+capabilities, 1)
}

// lists makes a server answer its lists without the number of the session, so that they are equal.
func lists(of map[string]string) func(*serverSession, *jsonrpc.Message) bool {
	return func(s *serverSession, m *jsonrpc.Message) bool {
		if !strings.HasSuffix(m.Method, "/list") {
			return false
		}
		result := of[m.Method]
		if result == "" {
			result = `{"of":"` + m.Method + `"}`
		}
		s.say(string(jsonrpc.NewResult(m.ID, []byte(result))))
		return true
	}
}

// laterIn makes all starts but the first take so long.
func laterIn(d time.Duration) func(context.Context, int) error {
	return func(_ context.Context, n int) error {
		if n > 1 {
			time.Sleep(d)
		}
		return nil
	}
}

// learned opens a connection that initializes itself, so that the server is known, and closes it.
func learned(t *testing.T, g *gateway.Gateway, u *server) {
	t.Helper()
	learnedFrom(t, g, u, initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
}

// learnedFromSilence has memory learn what the server says to the gateway's own initialize, in the session of a client that
// never initializes.
func learnedFromSilence(t *testing.T, g *gateway.Gateway, u *server) {
	t.Helper()
	learnedFrom(t, g, u, request("1", "tools/list"))
}

func learnedFrom(t *testing.T, g *gateway.Gateway, u *server, messages ...string) {
	t.Helper()
	p := connect(t, g, plain)
	p.post(messages...)
	time.Sleep(time.Second)
	p.take()
	p.c.Close(connstate.ClosedClient)
	synctest.Wait()
	equal(t, "starts", u.starts(), 1)
}

// returns opens a connection of such a client, which is answered from memory.
func returns(t *testing.T, g *gateway.Gateway) *peer {
	t.Helper()
	p := connect(t, g, plain)
	p.post(initialize("0", "2025-11-25", `{"roots":{}}`), initialized)
	p.want("0 " + resultWith(withLists))
	p.wantState(connstate.Resting)
	return p
}

// A client has initialize and its lists from memory, byte for byte. Its server starts with the first
// message that memory cannot answer, gets the client's own initialize, and the client is not told of
// lists that are the same.
func TestClientIsAnsweredFromMemory(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(map[string]string{"tools/list": `{"tools": [ ]}`})}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(request("1", "tools/list"), request("2", "prompts/list"), request("3", "resources/list"), request("4", "resources/templates/list"), request("5", "ping"))
		p.want(`1 {"tools": [ ]}`, `2 {"of":"prompts/list"}`, `3 {"of":"resources/list"}`, `4 {"of":"resources/templates/list"}`, "5 {}")
		time.Sleep(5 * time.Minute)
		equal(t, "starts", u.starts(), 1)
		equal(t, "answers from memory", metric(t, g, "mcp_sse_answers_from_memory_total"), 4)

		p.post(request("6", "tools/call"))
		p.want(answered("6", 2, "tools/call"))
		p.wantState(connstate.Ready)
		s := u.session(t, 2)
		wantText(t, "the initialize of the server", string(s.message(t, "initialize").Params()), `"roots"`)
		p.post(request("7", "tools/list"))
		p.want(`7 {"tools": [ ]}`)
		equal(t, "lists that the server was asked for", s.count("tools/list"), 2)
	})
}

// A client of HTTP+SSE that never initializes has the announcement from memory.
func TestAnnouncementFromMemory(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		first := connect(t, g, connstate.Client{})
		time.Sleep(time.Second)
		first.post(request("1", "tools/list"))
		first.take()
		first.c.Close(connstate.ClosedClient)
		p := connect(t, g, connstate.Client{})
		time.Sleep(time.Second)
		p.want("mcp-response: auto " + resultWith(withLists))
		p.wantState(connstate.Resting)
		p.post(request("1", "tools/list"))
		p.want(`1 {"of":"tools/list"}`, `mcp-response: 1 {"of":"tools/list"}`)
		equal(t, "starts", u.starts(), 1)
	})
}

// A response says that what its client knows of the server is from memory, until a session is there.
func TestResponsesTellOfMemory(t *testing.T) {
	fails := false
	u := &server{capabilities: withLists, handle: lists(nil), dial: func(context.Context, int) error {
		if fails {
			return errNoServer
		}
		return nil
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		state := func(target, body string) string {
			t.Helper()
			return post(t, g, target, body).Header().Get("X-Connection-State")
		}
		learned(t, g, u)
		opening := initialize("0", "2025-11-25", `{"roots":{}}`)
		equal(t, "state from memory", state("/mcp", opening), "resting")
		equal(t, "state of a client of another version", state("/mcp", initialize("0", "2025-06-18", `{"sampling":{}}`)), "")

		p := connect(t, g, connstate.Client{Transport: connstate.TransportSSE})
		path := "/sse/" + p.c.ID() + "/message"
		state(path, opening)
		synctest.Wait()
		p.wantState(connstate.Resting)
		equal(t, "state of one that rests", state(path, request("1", "tools/list")), "resting")
		p.post(request("2", "tools/call"))
		synctest.Wait()
		p.wantState(connstate.Ready)
		equal(t, "state of one that is ready", state(path, request("3", "tools/list")), "")

		fails = true
		u.session(t, u.starts()).die()
		synctest.Wait()
		p.post(request("4", "tools/call"))
		synctest.Wait()
		p.wantState(connstate.Failed)
		equal(t, "state after a failed start, when memory answers", state(path, request("5", "tools/list")), "resting")
	})
}

// Answers of a start whose client lists the tools and leaves are remembered.
func TestClientThatLeavesAtOnceIsRemembered(t *testing.T) {
	u := &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if !strings.HasPrefix(m.Method, "resources/") {
			return lists(nil)(s, m)
		}
		time.AfterFunc(time.Second, func() { lists(nil)(s, m) })
		return true
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
		p.want("0 *", "1 *")
		p.c.Close(connstate.ClosedClient)
		time.Sleep(5 * time.Second)
		equal(t, "sessions", u.open(), 0)
		returns(t, g)
	})
}

// Once a server has served a client's calls, its answers are for that client alone. No other one is told
// of them.
func TestListsOfOneClientAreNotForOthers(t *testing.T) {
	handle := func(s *serverSession, m *jsonrpc.Message) bool {
		resources := `{"resources":[]}`
		if s.count("tools/call") > 0 {
			resources = `{"resources":["secret"]}`
		}
		return lists(map[string]string{"resources/list": resources})(s, m)
	}
	shared := remembering()
	shared.Sessions = gateway.SessionsShared
	for name, opts := range map[string]gateway.Settings{"own": remembering(), "shared": shared} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: withLists, handle: handle}
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				p := connect(t, g, plain)
				p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/call"))
				time.Sleep(time.Second)
				p.take()
				p.post(request("2", "resources/list"))
				p.want(`2 {"resources":["secret"]}`)
				equal(t, "starts", u.starts(), 1)

				next := connect(t, g, plain)
				next.post(initialize("0", "2025-11-25", `{"roots":{}}`))
				next.want("0 *")
				next.wantState(connstate.Ready) // nothing is remembered
			})
		})
	}
}

// A list that the server does not have is refused from memory too: some clients ask for lists that it does not
// declare, and give up a server that is silent then.
func TestListsThatTheServerDoesNotHave(t *testing.T) {
	u := &server{capabilities: `{"tools":{},"resources":{}}`, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "resources/templates/list" {
			fails(-32601)(s, m)
			return true
		}
		return lists(nil)(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		p.want("0 *")
		p.post(request("1", "prompts/list"), request("2", "resources/templates/list"), request("3", "resources/list"))
		p.want("1 error -32601", "2 error -32601", `3 {"of":"resources/list"}`)
		equal(t, "starts", u.starts(), 1)
	})
}

// A client that has left before its server was ready leaves the next one a memory.
func TestNextClientAfterOneThatWasLostToTheStart(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: slow(5 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		time.Sleep(2 * time.Second)
		p.c.Close(connstate.ClosedClient)
		time.Sleep(20 * time.Second)
		equal(t, "sessions", u.open(), 0)
		starts := u.starts()
		returns(t, g)
		equal(t, "starts for the next one", u.starts()-starts, 0)
	})
}

// A client whose own initialize comes late is answered from memory too, while the start goes on.
func TestLateInitializeIsAnsweredFromMemory(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: slow(8 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		time.Sleep(9 * time.Second)
		p.post(request("1", "tools/list"))
		time.Sleep(time.Second)
		p.take()
		p.c.Close(connstate.ClosedClient)

		p = connect(t, g, plain)
		time.Sleep(150 * time.Millisecond)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		p.want("0 " + resultWith(withLists))
		p.post(request("1", "tools/list"))
		p.want(`1 {"of":"tools/list"}`)
	})
}

// A session that goes on after a restart of the gateway does not initialize again: its client has its lists
// from memory, those that the gateway itself was told in its version, and its call waits for the start.
func TestReturningSessionIsAnsweredFromMemory(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: laterIn(8 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learnedFromSilence(t, g, u)
		returning := plain
		returning.Version = "2025-11-25"
		p := connect(t, g, returning)
		p.post(request("1", "tools/list"))
		p.want(`1 {"of":"tools/list"}`)
		p.wantState(connstate.Resting)
		equal(t, "starts", u.starts(), 1)
		p.post(request("2", "tools/call"))
		time.Sleep(10 * time.Second)
		p.want(answered("2", 2, "tools/call"))

		p = connect(t, g, returning) // what comes first needs the server
		p.post(request("1", "tools/call"), request("2", "tools/list"))
		p.want(`2 {"of":"tools/list"}`)
		time.Sleep(10 * time.Second)
		p.want(answered("1", 3, "tools/call"))

		returning.Version = "2025-06-18" // nobody has told such a client anything
		p = connect(t, g, returning)
		p.post(request("1", "tools/list"))
		time.Sleep(10 * time.Second)
		p.want("1 initialization_error request_processing attempt 1")
	})
}

// So does a session of a version that the server has answered, although the gateway had asked for another one.
func TestReturningSessionOfAnotherVersion(t *testing.T) {
	u := &server{dial: laterIn(8 * time.Second), handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "initialize" {
			s.say(string(jsonrpc.NewResult(m.ID, []byte(strings.Replace(resultWith(withLists), "2025-11-25", "2025-06-18", 1)))))
			return true
		}
		return lists(nil)(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learnedFromSilence(t, g, u)
		returning := plain
		returning.Version = "2025-06-18"
		p := connect(t, g, returning)
		p.post(request("1", "tools/list"))
		p.want(`1 {"of":"tools/list"}`)
	})
}

// A call that came before the client's own initialize waits for the start too, once that is answered from
// memory.
func TestCallBeforeInitializeWaitsForTheStart(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: laterIn(8 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learnedFromSilence(t, g, u)
		p := connect(t, g, plain)
		time.Sleep(150 * time.Millisecond) // the start has begun
		p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"}}}`, request("2", "tools/list"))
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		p.want(`2 {"of":"tools/list"}`, "0 "+resultWith(withLists))
		time.Sleep(7 * time.Second)
		p.want("notifications/progress", "notifications/progress")
		time.Sleep(3 * time.Second)
		got := p.take()
		p.compare(got[len(got)-1:], []string{answered("1", 2, "tools/call")})
	})
}

// The session of a client that only calls, of whose kind nothing is remembered, ends too. The client rests on
// what that session has said; what that leaves open waits for the next one.
func TestIdleSessionOfAnUnknownKindEnds(t *testing.T) {
	big := `{"tools":"` + strings.Repeat("x", 5<<20) + `"}`
	for name, of := range map[string]map[string]string{"lists": nil, "a list too large to keep": {"tools/list": big}} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: withLists, handle: lists(of)}
			inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
				p := connect(t, g, plain)
				p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/call"))
				p.want("0 *", "1 *")
				time.Sleep(13 * time.Minute)
				equal(t, "sessions", u.open(), 0)
				p.wantState(connstate.Resting)
				p.post(request("2", "prompts/list"), request("3", "tools/call"))
				p.want(`2 {"of":"prompts/list"}`, answered("3", 2, "tools/call"))
				if of != nil {
					p.take() // the list is new to it
					p.post(request("4", "tools/list"))
					p.want("4 *")
				}
			})
		})
	}
}

// An error for a list that the server has had says nothing of the list.
func TestErrorForAListForgetsNothing(t *testing.T) {
	u := &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if s.n == 2 && m.Method == "tools/list" {
			fails(-32000)(s, m)
			return true
		}
		return lists(nil)(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(request("1", "tools/call"))
		p.want(answered("1", 2, "tools/call")) // and no list_changed
		next := returns(t, g)
		next.post(request("1", "tools/list"))
		next.want(`1 {"of":"tools/list"}`)
	})
}

// An argument with the name of a task is none.
func TestArgumentIsNoTask(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"task":"buy milk"}}}`)
		time.Sleep(time.Hour)
		equal(t, "sessions", u.open(), 0)
		p.take()
	})
}

// A client that declares something else than those before gets its answers from its own server.
func TestAnotherClientIsNotAnsweredFromMemory(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		for id, own := range map[string]string{
			"7": initialize("7", "2025-11-25", `{"sampling":{}}`), "8": initialize("8", "2025-06-18", `{"roots":{}}`),
		} {
			before := u.starts()
			p := connect(t, g, plain)
			p.post(own)
			p.want(id + " *")
			p.wantState(connstate.Ready)
			equal(t, "starts", u.starts(), before+1)
		}
	})
}

// When lists have changed since, the client is told, and gets the new ones. So does the next client,
// without a word.
func TestListsThatHaveChanged(t *testing.T) {
	u := &server{capabilities: withLists}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		tools := map[bool]string{true: `{"tools":"old"}`, false: `{"tools":"new"}`}[s.n == 1]
		return lists(map[string]string{"tools/list": tools})(s, m)
	}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(request("1", "tools/list"))
		p.want(`1 {"tools":"old"}`)
		p.post(request("2", "tools/call"))
		p.want("notifications/tools/list_changed", answered("2", 2, "tools/call"))
		p.post(request("3", "tools/list"))
		p.want(`3 {"tools":"new"}`)

		next := returns(t, g)
		next.post(request("1", "tools/list"), request("2", "tools/call"))
		next.want(`1 {"tools":"new"}`, answered("2", 3, "tools/call"))
	})
}

// A request for something that the client was told of, and that the server no longer has, is refused with the
// reason.
func TestServerThatHasLostAList(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		u.capabilities = `{"tools":{}}`
		p := returns(t, g)
		p.post(request("1", "tools/call"))
		p.want("notifications/prompts/list_changed", "notifications/resources/list_changed", answered("1", 2, "tools/call"))
		p.post(request("2", "prompts/get"))
		p.want("2 server_changed retryable=false")
	})
}

// A session without a message for ProcessIdle ends, and the connection rests. The next call starts
// another one, with the client's log level.
func TestIdleProcessEnds(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("8", "tools/list"))
		p.want("0 *", "8 *")
		p.post(request("1", "logging/setLevel"), request("2", "tools/call"))
		p.want("1 *", "2 *")
		time.Sleep(9 * time.Minute)
		p.served("3", 1, "tools/call")
		time.Sleep(9 * time.Minute)
		p.post(request("5", "ping")) // it is not for the server
		p.want("5 *")
		equal(t, "sessions", u.open(), 1)
		time.Sleep(4 * time.Minute)
		equal(t, "sessions", u.open(), 0)
		p.wantState(connstate.Resting)
		equal(t, "losses", metric(t, g, "mcp_sse_session_restarts_total"), 0)

		p.post(request("6", "tools/list"))
		p.want(`6 {"of":"tools/list"}`)
		p.post(request("7", "tools/call"))
		p.want(answered("7", 2, "tools/call"))
		equal(t, "log level", u.session(t, 2).count("logging/setLevel"), 1)
	})
}

// So does that of a client that only calls, and never initializes, on each transport. Over Streamable HTTP that is a
// session for one call, which ends with it.
func TestIdleProcessOfAClientThatOnlyCallsEnds(t *testing.T) {
	type calls = func(id string) (answer string)
	for name, c := range map[string]struct {
		open   func(t *testing.T, g *gateway.Gateway) (call calls, end func())
		before int // sessions shortly before process-idle
	}{
		"/sse": {callsOnSSE, 1},
		"/mcp": {func(t *testing.T, g *gateway.Gateway) (calls, func()) {
			return func(id string) string { return post(t, g, "/mcp", request(id, "tools/call")).Body.String() }, func() {}
		}, 0},
		"stdio": {callsOnStdio, 1},
	} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: withLists, handle: lists(nil)}
			opts := remembering()
			opts.IdleTimeout = time.Hour // that of the connection
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				call, end := c.open(t, g)
				defer end()
				wantText(t, "the first call", call("1"), `"id":1`, `"result"`)
				time.Sleep(9 * time.Minute)
				equal(t, "sessions before process-idle", u.open(), c.before)
				time.Sleep(4 * time.Minute)
				equal(t, "sessions after it", u.open(), 0)
				wantText(t, "the next call", call("2"), `"id":2`, `"result"`)
			})
		})
	}
}

// callsOnSSE opens a stream, and returns a function that calls on it, and one that ends it.
func callsOnSSE(t *testing.T, g *gateway.Gateway) (call func(id string) (answer string), end func()) {
	srv := pipetest.Serve(g, nil, nil)
	client, err := ssetest.Dial(srv.Client, "http://localhost/sse", nil)
	must(t, err)
	events := make(chan ssetest.Event, 1000)
	go func() { // ends with the stream
		for e, err := client.Next(); err == nil; e, err = client.Next() {
			events <- e
		}
	}()
	return func(id string) string {
			must(t, client.Send(request(id, "tools/call")))
			for {
				if e := <-events; strings.Contains(e.Data, `"id":`+id) {
					return e.Data
				}
			}
		}, func() {
			client.Close()
			srv.Stop()
		}
}

// callsOnStdio is callsOnSSE for a client on stdin and stdout.
func callsOnStdio(t *testing.T, g *gateway.Gateway) (call func(id string) (answer string), end func()) {
	in, client := io.Pipe()
	out, answers := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- g.ServeStdio(t.Context(), in, answers, time.Second) }() // ends with its input
	lines := bufio.NewReader(out)
	return func(id string) string {
			_, err := fmt.Fprintln(client, request(id, "tools/call"))
			must(t, err)
			answer, err := lines.ReadString('\n')
			must(t, err)
			return answer
		}, func() {
			_ = client.Close()
			must(t, <-done)
		}
}

// A request that is open, or state that belongs to this one session, keeps its process.
func TestProcessThatIsInUseDoesNotEnd(t *testing.T) {
	for name, open := range map[string]func(p *peer, s *serverSession){
		"a request":  func(p *peer, _ *serverSession) { p.post(request("9", "work")) },
		"a question": func(_ *peer, s *serverSession) { s.say(request("1", "roots/list")) },
		"a subscription": func(p *peer, _ *serverSession) {
			p.post(`{"jsonrpc":"2.0","id":9,"method":"resources/subscribe","params":{"uri":"a"}}`)
		},
		"a task": func(p *peer, _ *serverSession) {
			p.post(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"task":{}}}`)
		},
		"other lists": func(_ *peer, s *serverSession) {
			s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
				return m.Method == "work" || lists(nil)(s, m)
			}}
			opts := remembering()
			opts.RequestTimeout = 5 * time.Hour
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				p := connect(t, g, plain)
				p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
				synctest.Wait()
				open(p, u.session(t, 1))
				time.Sleep(time.Hour)
				equal(t, "sessions", u.open(), 1)
				p.take()
			})
		})
	}
}

// Without ProcessIdle no process ends for that.
func TestProcessIdleCanBeOff(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	opts := remembering()
	opts.Remember.ProcessIdle = -1
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(request("1", "tools/call"))
		time.Sleep(100 * time.Hour)
		equal(t, "sessions", u.open(), 1)
		p.want("1 *")
	})
}

// Over Streamable HTTP, too, a client hears every 3 s that its call waits for a start.
func TestPOSTHasTheProgressOfTheStart(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: laterIn(20 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		id := post(t, g, "/mcp", initialize("0", "2025-11-25", `{"roots":{}}`)).Header().Get("Mcp-Session-Id")
		began := time.Now()
		said := post(t, g, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"}}}`,
			"Mcp-Session-Id", id).Body.String()
		equal(t, "time", time.Since(began), 20*time.Second)
		equal(t, "reports", strings.Count(said, `"progressToken":"p"`), 6)
		equal(t, "answers", strings.Count(said, `"result":`), 1)
	})
}

// A call waits for a slow start as for a slow answer, and its client hears of it.
func TestCallWaitsForTheStart(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: laterIn(20 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"}}}`, request("2", "tools/call"))
		time.Sleep(7 * time.Second)
		p.want("notifications/progress", "notifications/progress")
		p.post(request("3", "tools/list"))
		p.want(`3 {"of":"tools/list"}`)
		time.Sleep(20 * time.Second)
		got := p.take()
		p.compare(got[len(got)-2:], []string{answered("1", 2, "tools/call"), answered("2", 2, "tools/call")})
	})
}

// A client that has rested may call as often as any other while its server starts.
func TestManyCallsWaitForTheStart(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: laterIn(20 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		for i := range 300 {
			p.post(request(strconv.Itoa(i+1), "tools/call"))
		}
		time.Sleep(time.Minute)
		got := p.take()
		equal(t, "answers", len(got), 300)
		for _, answer := range got {
			if !strings.Contains(answer, `"session":2`) {
				t.Fatalf("a call got %s", answer)
			}
		}
	})
}

// A server that does not start costs the call, which learns why. Memory forgets nothing, and the next
// call tries again.
func TestServerThatDoesNotStartIsStillRemembered(t *testing.T) {
	broken := true
	u := &server{capabilities: withLists, handle: lists(nil), dial: func(_ context.Context, n int) error {
		if n > 1 && broken {
			return errors.New("no such file")
		}
		return nil
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(request("1", "tools/call"))
		time.Sleep(time.Minute)
		p.want("1 initialization_error request_creation attempt 5")
		p.post(request("2", "tools/list"))
		p.want(`2 {"of":"tools/list"}`)
		next := returns(t, g)
		next.post(request("1", "tools/list"))
		next.want(`1 {"of":"tools/list"}`)

		broken = false
		time.Sleep(time.Minute)
		p.post(request("3", "tools/call"))
		p.want(answered("3", 7, "tools/call"))
	})
}

// An answer that is older than For is used, and the server is asked again in the background.
func TestOldMemoryIsRenewed(t *testing.T) {
	tools := `{"tools":"old"}`
	u := &server{capabilities: withLists, dial: slow(500 * time.Millisecond), handle: func(s *serverSession, m *jsonrpc.Message) bool {
		return lists(map[string]string{"tools/list": tools})(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		time.Sleep(25 * time.Hour)
		tools = `{"tools":"new"}`
		for _, want := range []string{"old", "new"} {
			p := returns(t, g)
			p.post(request("1", "tools/list"))
			p.want(`1 {"tools":"` + want + `"}`)
			p.wantState(connstate.Resting)
			time.Sleep(time.Second)
			equal(t, "sessions", u.open(), 0)
		}
		equal(t, "starts", u.starts(), 2)
	})
}

// Clients of a shared session have the same memory. A call waits for the session of all.
func TestSharedSessionFromMemory(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	opts := remembering()
	opts.Sessions = gateway.SessionsShared
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		connectReady(t, g)
		synctest.Wait()
		u.session(t, 1).die()
		time.Sleep(time.Second)
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		p.want("0 " + resultWith(withLists))
		p.post(request("1", "tools/list"), request("2", "tools/call"))
		p.want(`1 {"of":"tools/list"}`, answered("2", 2, "tools/call"))
	})
}

// A connection at rest ends without having started anything.
func TestEndOfARest(t *testing.T) {
	for name, end := range map[string]func(g *gateway.Gateway, p *peer){
		"the client leaves": func(_ *gateway.Gateway, p *peer) { p.c.Close(connstate.ClosedClient) },
		"the gateway stops": func(g *gateway.Gateway, _ *peer) { <-shutdown(g, time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: withLists, handle: lists(nil)}
			inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
				learned(t, g, u)
				p := returns(t, g)
				p.post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
				end(g, p)
				synctest.Wait()
				equal(t, "starts", u.starts(), 1)
			})
		})
	}
}

// Another server in the configuration may have other lists: it is started once, for all clients that rest,
// to say which, and they go on resting.
func TestServerIsReplacedDuringARest(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	other := &server{identity: "other", capabilities: withLists, handle: lists(map[string]string{"tools/list": `{"tools":"other"}`})}
	opts := remembering()
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p, q := returns(t, g), returns(t, g)
		reconfigure(t, g, other, opts.Options)
		time.Sleep(time.Second)
		for _, p := range []*peer{p, q} {
			p.wantState(connstate.Resting)
			p.want("notifications/tools/list_changed")
			p.post(request("1", "tools/list"))
			p.want(`1 {"tools":"other"}`)
		}
		equal(t, "starts of the other server", other.starts(), 1)
		p.post(request("2", "tools/call"))
		p.want(answered("2", 2, "tools/call"))
	})
}

// Where clients of several names rest, the other server is started for each name, one after the other, and for nobody longer.
func TestServerIsReplacedDuringARestOfManyClients(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	other := &server{identity: "other", capabilities: withLists, handle: lists(map[string]string{"tools/list": `{"tools":"other"}`}),
		dial: slow(8 * time.Second)}
	opts := remembering()
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		var all []*peer
		for _, name := range []string{"a", "b", "claude-code", "codex-mcp-client"} {
			hello := strings.Replace(initialize("0", "2025-11-25", `{"roots":{}}`), `"peer"`, `"`+name+`"`, 1)
			for range 2 { // the first one teaches
				p := connect(t, g, plain)
				p.post(hello, request("1", "tools/list"))
				time.Sleep(time.Second)
				p.take()
				all = append(all, p)
			}
			all[len(all)-2].c.Close(connstate.ClosedClient)
			all = append(all[:len(all)-2], all[len(all)-1])
		}
		time.Sleep(time.Hour)
		reconfigure(t, g, other, opts.Options)
		for range 60 {
			time.Sleep(time.Second)
			if n := other.open(); n > 1 {
				t.Fatalf("%d processes of the other server", n)
			}
		}
		for _, p := range all {
			p.wantState(connstate.Resting)
			p.want("notifications/tools/list_changed")
		}
		equal(t, "starts of the other server", other.starts(), len(all))
	})
}

// A client that needs the other server does not wait until that has said what it has, nor does one whose
// other server cannot say so.
func TestServerThatIsNotKnownTakesTheOneOfARest(t *testing.T) {
	for name, dial := range map[string]func(context.Context, int) error{
		"it is slow": slow(3 * time.Second),
		"it fails":   func(_ context.Context, n int) error { return map[bool]error{true: errors.New("no")}[n == 1] },
	} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: withLists, handle: lists(nil)}
			other := &server{identity: "other", capabilities: withLists, handle: lists(nil), dial: dial}
			opts := remembering()
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				learned(t, g, u)
				p := returns(t, g)
				reconfigure(t, g, other, opts.Options)
				p.post(request("1", "tools/call"))
				time.Sleep(10 * time.Second)
				p.wantState(connstate.Ready)
				if got := p.take(); !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, `1 {"session":`) }) {
					t.Errorf("the client got %q", got)
				}
			})
		})
	}
}

// A client that is ready, and has not needed its server for a while, learns which lists the server has that
// takes its place.
func TestServerOfAnIdleClientIsReplaced(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(map[string]string{"tools/list": `{"tools":"one"}`})}
	other := &server{identity: "other", capabilities: withLists, handle: lists(map[string]string{"tools/list": `{"tools":"other"}`})}
	opts := remembering()
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		reconfigure(t, g, other, opts.Options)
		learned(t, g, other)
		reconfigure(t, g, u, opts.Options)
		p := returns(t, g)
		p.post(request("1", "tools/list"), request("2", "tools/call"))
		p.want(`1 {"tools":"one"}`, `2 *`)
		time.Sleep(3 * time.Minute)
		reconfigure(t, g, other, opts.Options)
		time.Sleep(time.Minute)
		p.want("notifications/tools/list_changed")
		p.post(request("4", "tools/list"))
		p.want(`4 {"tools":"other"}`)
	})
}

// A client whose idle session has other lists than memory, or is lost, is told when memory answers again.
func TestListsOfASessionThatEndsAreForgotten(t *testing.T) {
	for name, end := range map[string]func(s *serverSession){
		"idle": func(*serverSession) { time.Sleep(time.Hour) },
		"lost": func(s *serverSession) { time.Sleep(3 * time.Minute); s.die(); time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: withLists}
			u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
				tools := map[bool]string{true: `{"tools":"by its roots"}`, false: `{"tools":"for all"}`}[s.n == 2]
				return lists(map[string]string{"tools/list": tools})(s, m)
			}
			inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
				learned(t, g, u)
				p := returns(t, g)
				p.post(request("1", "tools/call"))
				p.want("notifications/tools/list_changed", "1 *")
				q := returns(t, g)
				q.post(request("1", "tools/call")) // its session says "for all"
				q.take()
				end(u.session(t, 2))
				if got := p.take(); !slices.Contains(got, "notifications/tools/list_changed") {
					t.Errorf("the client got %q", got)
				}
				p.post(request("2", "tools/list"))
				p.want(`2 {"tools":"for all"}`)
			})
		})
	}
}

// Memory can be switched off while a client that goes on with an earlier session comes.
func TestMemoryIsSwitchedOff(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	opts := remembering()
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		returning := plain
		returning.Version = "2025-11-25"
		p := connect(t, g, returning)
		synctest.Wait()
		off := opts.Options
		off.Remember = nil
		reconfigure(t, g, u, off)
		p.post(request("1", "tools/call"))
		time.Sleep(time.Second)
		got := p.take() // its session is that of the old options or of the new ones
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, `1 {"session":`) }) {
			t.Errorf("the client got %q", got)
		}
	})
}

// A server that asks for the roots at once has told nobody what it says to all: a session without a client
// shows it, and idle clients have no process.
func TestServerThatAsksAtOnceIsRemembered(t *testing.T) {
	u := &server{capabilities: withLists}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "notifications/initialized" {
			s.say(request("99", "roots/list"))
			return true
		}
		return lists(nil)(s, m)
	}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), initialized)
		p.want("0 *", "request roots/list")
		p.post(`{"jsonrpc":"2.0","id":` + string(p.lastRequest(t)) + `,"result":{"roots":[]}}`)
		p.post(request("1", "tools/list"))
		p.want("1 *")
		time.Sleep(time.Hour)
		p.wantState(connstate.Resting)
		equal(t, "sessions", u.open(), 0)
		returns(t, g)
		equal(t, "starts, one of them for nobody", u.starts(), 2)
	})
}

// The call of a client that does not initialize waits for nothing but the server.
func TestCallOfAReturningSessionDoesNotWait(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		returning := plain
		returning.Version = "2025-11-25"
		p := connect(t, g, returning)
		p.post(request("1", "tools/call"))
		p.want(answered("1", 2, "tools/call"))
	})
}

// A server that asks before it answers is not waited for: its question has to reach the client first.
func TestServerThatAsksBeforeItAnswers(t *testing.T) {
	u := &server{capabilities: withLists}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		switch {
		case m.Method == "notifications/initialized" && s.n > 1:
			s.say(request("99", "roots/list"))
		case s.n > 1 && m.Kind == jsonrpc.Request && m.Method != "initialize":
			return m.Method != "tools/call" // the lists are answered later than the test looks
		default:
			return lists(nil)(s, m)
		}
		return true
	}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(request("1", "tools/call"))
		synctest.Wait()
		p.want("request roots/list", answered("1", 2, "tools/call"))
	})
}

// A session that is lost while its client rests or not is none that idleness has ended: requests that
// only read are repeated on the next one.
func TestLossAfterARest(t *testing.T) {
	u := &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if s.n == 2 && m.Method == "resources/read" {
			s.die()
			return true
		}
		return lists(nil)(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(request("1", "resources/read"))
		time.Sleep(5 * time.Second)
		if got := p.take(); !slices.Contains(got, answered("1", 3, "resources/read")) {
			t.Errorf("the client got %q, want the answer of session 3", got)
		}
	})
}
