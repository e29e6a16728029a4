package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// student is a person whose login keeps what the server says, by place and client.
type student struct {
	person
	mu   sync.Mutex
	mark string
	said map[string]remember.Answers
}

func newStudent() *student {
	s := &student{mark: "m", said: map[string]remember.Answers{}, person: person{full: "log in at L", public: "log in"}}
	s.loggedIn.Store(true)
	return s
}

func (s *student) Mark() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark
}

func (s *student) Recall(place string, client remember.Client, _ *slog.Logger) *remember.Answers {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.said[place+client.String()]; ok {
		return &a
	}
	return nil
}

func (s *student) Learn(mark, place string, client remember.Client, said remember.Answers, _ *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark == s.mark {
		s.said[place+client.String()] = said
	}
}

// listing is a server with two pages of tools.
func listing(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	if m == nil || m.Method != "tools/list" {
		legacyServer(w, r, m)
		return
	}
	page := `{"resultType":"complete","tools":[{"name":"first"}],"nextCursor":"two","ttlMs":60000,"cacheScope":"private"}`
	if cursor, _ := m.Param("cursor").Text(); cursor == "two" {
		page = `{"tools":[{"name":"second"}]}`
	}
	upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte(page))))
}

const (
	listOne = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	listTwo = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"two","_meta":{"progressToken":1}}}`
)

// What the server says to a client with a login is kept, if it is whole, and nothing but the login and what the client
// declares has a part in it.
func TestWhatIsKeptOfASession(t *testing.T) {
	for name, test := range map[string]struct {
		asker      asker.Asker
		initialize string
		messages   []string
		isKept     bool
	}{
		"all pages":            {messages: []string{listOne, listTwo}, isKept: true},
		"the first page alone": {messages: []string{listOne}},
		"the last page alone":  {messages: []string{listTwo}},
		"pages after a ping":   {messages: []string{`{"jsonrpc":"2.0","id":4,"method":"ping"}`, listOne, listTwo}, isKept: true},
		"with traces": {
			initialize: strings.Replace(upstreamtest.Initialize, `"capabilities"`, `"_meta":{"traceparent":"00-1-2-01"},"capabilities"`, 1),
			messages: []string{
				`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"traceparent":"00-1-3-01","tracestate":"a=b"}}}`,
				`{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"two","_meta":{"progressToken":1,"traceparent":"00-1-4-01"}}}`,
			}, isKept: true,
		},
		"traces, and something of the client's own": {
			initialize: strings.Replace(upstreamtest.Initialize, `"capabilities"`, `"_meta":{"x":"evil"},"_meta":{"traceparent":"00-1-2-01"},"capabilities"`, 1),
			messages:   []string{listOne, listTwo},
		},
		"after a call":             {messages: []string{upstreamtest.Call2, listOne, listTwo}},
		"a call between the pages": {messages: []string{listOne, upstreamtest.Call2, listTwo}},
		"params of the client's own": {messages: []string{
			`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"x":"y"}}}`, listTwo,
		}},
		"what the client declares, again": {messages: []string{
			`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`, listTwo,
		}, isKept: true},
		"another client": {messages: []string{
			`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"eve","version":"1"}}}}`, listTwo,
		}},
		"headers of the client": {asker: asker.Asker{Header: http.Header{"X-Tenant": {"a"}}}, messages: []string{listOne, listTwo}},
		"more than MCP has in initialize": {
			initialize: strings.Replace(upstreamtest.Initialize, `"capabilities"`, `"x":1,"capabilities"`, 1), messages: []string{listOne, listTwo},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudent()
			conn, err := remote.URL{Address: closedTo(t, "", listing), Credentials: s}.Dial(asker.NewContext(t.Context(), &test.asker))
			ssetest.Must(t, err)
			initialize := test.initialize
			if initialize == "" {
				initialize = upstreamtest.Initialize
			}
			for _, m := range append([]string{initialize}, test.messages...) {
				upstreamtest.Send(t, conn, m)
				upstreamtest.Recv(t, conn)
			}
			ssetest.Must(t, conn.Close())
			ssetest.Want(t, "kept", len(s.said) > 0, test.isKept)
		})
	}
}

// After the login has ended, a client of the same kind still has what the server said, and another kind has the tool
// login. A session in the place of one with the server teaches nothing.
func TestListsOutliveALogin(t *testing.T) {
	s := newStudent()
	up := remote.URL{Address: closedTo(t, "", listing), Credentials: s}
	conn := dialFor(t, up)
	var said []string
	for _, m := range []string{upstreamtest.Initialize, listOne, listTwo} {
		upstreamtest.Send(t, conn, m)
		said = append(said, strings.NewReplacer(`"resultType":"complete",`, "", `,"ttlMs":60000,"cacheScope":"private"`, "").Replace(upstreamtest.Recv(t, conn)))
	}
	ssetest.Must(t, conn.Close())
	s.loggedIn.Store(false)
	conn = dialFor(t, up)
	for i, m := range []string{upstreamtest.Initialize, listOne, listTwo} {
		upstreamtest.Send(t, conn, m)
		ssetest.Want(t, m, upstreamtest.Recv(t, conn), said[i])
	}
	upstreamtest.Send(t, conn, upstreamtest.Call2)
	ssetest.WantText(t, "a call", upstreamtest.Recv(t, conn), "log in at the link", `"isError":true`)
	clear(s.said)
	other := dialFor(t, up)
	for _, m := range []string{upstreamtest.Initialize, listOne, listTwo} {
		upstreamtest.Send(t, other, m)
		ssetest.WantText(t, m, upstreamtest.Recv(t, other), "login")
	}
	ssetest.Must(t, other.Close())
	ssetest.Want(t, "learned of a session in the place of one", len(s.said), 0)
}

// What was said to one login is not kept for another one that takes its place during the session.
func TestLoginsThatChangeUnderWay(t *testing.T) {
	s := newStudent()
	conn := dialFor(t, remote.URL{Address: closedTo(t, "", listing), Credentials: s})
	for _, m := range []string{upstreamtest.Initialize, listOne} {
		upstreamtest.Send(t, conn, m)
		upstreamtest.Recv(t, conn)
	}
	s.mu.Lock()
	s.mark = "another"
	s.mu.Unlock()
	upstreamtest.Send(t, conn, listTwo)
	upstreamtest.Recv(t, conn)
	ssetest.Must(t, conn.Close())
	ssetest.Want(t, "kept", len(s.said), 0)
}

// local is a student whose login is for this machine alone.
type local struct{ *student }

func (local) BeginsAtPage() bool { return true }

func (local) BeginAtPage(context.Context, string) (string, error) { return "", errors.New("no") }

// What the server says to a client that a proxy has brought, and that may not use the login, is not kept for those who
// may.
func TestNothingIsKeptOfAClientOfAProxy(t *testing.T) {
	for _, isProxied := range []bool{false, true} {
		s := newStudent()
		conn, err := remote.URL{Address: closedTo(t, "x", listing), Credentials: local{s}}.Dial(asker.NewContext(t.Context(), &asker.Asker{Proxied: isProxied}))
		ssetest.Must(t, err)
		for _, m := range []string{upstreamtest.Initialize, upstreamtest.Initialized, listOne, listTwo} {
			upstreamtest.Send(t, conn, m)
			if m != upstreamtest.Initialized {
				upstreamtest.Recv(t, conn)
			}
		}
		ssetest.Must(t, conn.Close())
		ssetest.Want(t, "what is kept", len(s.said), map[bool]int{false: 1}[isProxied])
	}
}

// A client with a token of its own for the server, which forward-header renames, gets no session in the place of one with
// the server because another client is not logged in there.
func TestClientWithItsOwnTokenNeedsNoLogin(t *testing.T) {
	p := &person{full: "log in at L", public: "log in at L"}
	up := remote.URL{Address: closedTo(t, "tools/list", listing), Credentials: p, Rename: map[string]string{"X-Token": "Authorization"}}.Observed(nil, nil).(remote.URL)
	open := func(header http.Header) jsonrpc.Conn {
		conn, err := up.Dial(asker.NewContext(t.Context(), &asker.Asker{Header: header}))
		ssetest.Must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		upstreamtest.Send(t, conn, upstreamtest.Initialize)
		upstreamtest.Recv(t, conn)
		return conn
	}
	without := open(nil)
	retired := make(chan jsonrpc.ID, 1)
	without.(retirable).OnRetire(func(request jsonrpc.ID, _ error) { retired <- request })
	upstreamtest.Send(t, without, listOne)
	go func() { _, _ = without.Recv() }() // ends with the session
	ssetest.Want(t, "the refused list", <-retired, "2")
	with := open(http.Header{"X-Token": {"Bearer good"}})
	upstreamtest.Send(t, with, listOne)
	ssetest.WantText(t, "the list of the other one", upstreamtest.Recv(t, with), `"name":"first"`)
}
