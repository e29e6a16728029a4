package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/standin"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// person are credentials of a person who may log in.
type person struct {
	loggedIn     atomic.Bool
	hindered     atomic.Bool
	refuses      atomic.Bool // the issuer, to renew it
	logsIn       bool        // when asked for advice
	full, public string      // the advice
	link         string      // in it
	opened       atomic.Int32
	asked        atomic.Int32 // for advice on account of a client
	quietly      atomic.Int32 // on no client's account
}

func (p *person) Authorizer(func() string, *slog.Logger) remote.Authorizer {
	return func(context.Context, string) (string, error) {
		if p.refuses.Load() {
			return "", errors.New("the issuer fails")
		}
		if p.loggedIn.Load() {
			return "Bearer good", nil
		}
		return "", nil
	}
}

func (p *person) Advise(_ context.Context, resp *http.Response, asks bool) (again bool, full, public, link string) {
	if asks {
		p.asked.Add(1)
	} else {
		p.quietly.Add(1)
	}
	if asks && p.logsIn {
		p.loggedIn.Store(true)
		return true, "", "", ""
	}
	return false, p.full, p.public, p.link
}

func (p *person) LoggedIn() bool { return p.loggedIn.Load() }

func (p *person) Hindered() (string, bool) { return "call again later", p.hindered.Load() }

func (p *person) AwaitLogin(ctx context.Context) bool {
	for standin.IsNeeded(p) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (p *person) Opened(context.Context) { p.opened.Add(1) }

func (p *person) Ask(context.Context) (string, string, bool) {
	return "log in at the link", "", p.loggedIn.Load()
}

var _ standin.Asker = (*person)(nil)

// closedTo is a server whose methods with a part of their name need the token.
func closedTo(t *testing.T, method string, serve upstreamtest.Handler) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		header, has := r.Header["Authorization"]
		switch {
		case has && header[0] != "Bearer good":
			t.Errorf("the server got the Authorization %q", header)
		case !has && (m == nil || strings.Contains(m.Method, method)):
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve(w, r, m)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/mcp"
}

// dialFor opens a session for a client.
func dialFor(t *testing.T, up remote.URL) jsonrpc.Conn {
	t.Helper()
	conn, err := up.Dial(asker.NewContext(t.Context(), &asker.Asker{}))
	ssetest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A call that is refused for want of a login is answered with what to do: as the result of the tool where all may know
// that, else as an error that has it for those who may. If somebody logs in meanwhile, the call goes on.
func TestCallsThatNeedALogin(t *testing.T) {
	for name, serve := range map[string]upstreamtest.Handler{"streamable": legacyServer, "stateless": modernServer} {
		for _, test := range []struct {
			p    *person
			want []string
		}{
			{&person{full: "log in at L", public: "log in at L"}, []string{`"result":{`, `"isError":true`, `"text":"log in at L"`}},
			{&person{full: "log in at L", public: "log in"}, []string{`"error":{`, `"message":"log in"`, `log in at L`, `"unauthorized"`}},
			{&person{logsIn: true}, []string{`"result":{`}},
			{&person{}, []string{`"error":{`, "configure the credentials that it wants"}},
		} {
			t.Run(name, func(t *testing.T) {
				up := remote.URL{Address: closedTo(t, "tools/call", serve), Credentials: test.p}
				conn := dialFor(t, up)
				upstreamtest.Send(t, conn, upstreamtest.Initialize)
				upstreamtest.Recv(t, conn)
				upstreamtest.Send(t, conn, upstreamtest.Initialized)
				upstreamtest.Send(t, conn, upstreamtest.Call2)
				got := upstreamtest.Recv(t, conn)
				ssetest.WantText(t, "answer", got, test.want...)
				if test.p.logsIn && strings.Contains(got, "isError") {
					t.Errorf("got %s", got)
				}
				ssetest.Want(t, "questions for the client", test.p.asked.Load(), int32(1))
				ssetest.Want(t, "sessions in the place of one", test.p.opened.Load(), int32(0))
			})
		}
	}
}

// A server that lets nobody in before a login has a session in its place, without a question to anybody. After the login
// the next session is one with the server.
func TestServersThatNeedALogin(t *testing.T) {
	for name, serve := range map[string]upstreamtest.Handler{"streamable": legacyServer, "stateless": modernServer, "sse": sseOnly(404)} {
		for _, transport := range []string{"", map[string]string{"sse": remote.TransportSSE, "streamable": remote.TransportStreamable, "stateless": remote.TransportStateless}[name]} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				p := &person{full: "log in at L", public: "log in"}
				up := remote.URL{Address: closedTo(t, "", serve), Credentials: p, Transport: transport}
				conn := dialFor(t, up)
				upstreamtest.Send(t, conn, upstreamtest.Initialize)
				ssetest.WantText(t, "initialize", upstreamtest.Recv(t, conn), `"listChanged":true`)
				upstreamtest.Send(t, conn, upstreamtest.Call2)
				ssetest.WantText(t, "a call", upstreamtest.Recv(t, conn), "log in at the link", `"isError":true`)
				ssetest.Want(t, "questions for the client", p.asked.Load(), int32(0))
				ssetest.Want(t, "sessions", p.opened.Load(), int32(1))
				p.loggedIn.Store(true)
				if _, err := conn.Recv(); err == nil || !strings.Contains(err.Error(), "logged in") {
					t.Errorf("after the login: %v", err)
				}
				conn = dialFor(t, up)
				upstreamtest.Send(t, conn, upstreamtest.Initialize)
				if got := upstreamtest.Recv(t, conn); strings.Contains(got, "Nobody is logged in") {
					t.Errorf("after the login: %s", got)
				}
			})
		}
	}
}

// Where a login does not help, there is no session in the place of that with the server.
func TestServersThatWantSomethingElse(t *testing.T) {
	up := remote.URL{Address: closedTo(t, "", legacyServer), Credentials: new(person)}
	_, err := up.Dial(asker.NewContext(t.Context(), &asker.Asker{}))
	ssetest.WantText(t, "Dial", err, "configure the credentials")
}

// Nor is there one for a probe, which is to know that the server needs a login.
func TestProbesNeedALogin(t *testing.T) {
	p := &person{full: "log in at L", public: "log in"}
	_, err := remote.URL{Address: closedTo(t, "", legacyServer), Credentials: p}.Dial(t.Context())
	ssetest.WantText(t, "Dial", err, "log in at L") // for the operator
	ssetest.Want(t, "questions", p.asked.Load()+p.opened.Load(), int32(0))
}

// retirable is a multiplex.Retirable.
type retirable interface {
	OnRetire(retire func(request jsonrpc.ID, why error))
}

// A program that uses a session without a gateway gets the refusal of a list like any other answer.
func TestRefusedListsWithoutAGateway(t *testing.T) {
	p := &person{full: "log in at L", public: "log in at L"}
	p.loggedIn.Store(true)
	conn := dialFor(t, remote.URL{Address: closedTo(t, "tools/list", legacyServer), Credentials: p})
	upstreamtest.Send(t, conn, upstreamtest.Initialize)
	upstreamtest.Recv(t, conn)
	p.loggedIn.Store(false)
	upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":6,"method":"tools/list"}`)
	ssetest.WantText(t, "the refused list", upstreamtest.Recv(t, conn), `"id":6,"error":{`, `"needsLogin":true`)
}

// A login ends in a session, or was not made when a server has opened it to anybody: a list that the server refuses retires
// the session, and the list is asked for again in one in its place, which has the tools of before or the tool login. The
// session answers what it has.
func TestLoginsThatEndInASession(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":%d,"method":%q}`
	for name, serve := range map[string]upstreamtest.Handler{"streamable": legacyServer, "stateless": modernServer} {
		for what, before := range map[string]struct{ isLoggedIn, hasList bool }{
			"a list before": {true, true}, "none before": {true, false}, "a list for anybody before": {false, true},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				p := &person{full: "log in at L", public: "log in at L"}
				p.loggedIn.Store(true)
				up := remote.URL{Address: closedTo(t, "tools/list", serve), Credentials: p}.Observed(nil, nil).(remote.URL) // sessions share what they find out
				conn := dialFor(t, up)
				var retired []string
				conn.(retirable).OnRetire(func(request jsonrpc.ID, why error) {
					retired = append(retired, fmt.Sprintf("%s: %v", request, why))
					upstreamtest.Send(t, conn, upstreamtest.Call2)
				})
				upstreamtest.Send(t, conn, upstreamtest.Initialize)
				upstreamtest.Recv(t, conn)
				upstreamtest.Send(t, conn, upstreamtest.Initialized)
				if before.hasList {
					method := "tools/list"
					if !before.isLoggedIn { // this one is open to anybody
						method = "prompts/list"
						p.loggedIn.Store(false)
					}
					upstreamtest.Send(t, conn, fmt.Sprintf(list, 5, method))
					ssetest.WantText(t, "the list", upstreamtest.Recv(t, conn), `"result"`)
				}
				p.loggedIn.Store(false)
				upstreamtest.Send(t, conn, fmt.Sprintf(list, 6, "tools/list"))
				ssetest.WantText(t, "the answer to a call after that", upstreamtest.Recv(t, conn), `"id":2`)
				ssetest.Want(t, "the requests that it has not taken", retired, []string{"6: the server wants a login for its lists"})
				conn = dialFor(t, up)
				upstreamtest.Send(t, conn, upstreamtest.Initialize)
				upstreamtest.Recv(t, conn)
				upstreamtest.Send(t, conn, fmt.Sprintf(list, 7, "tools/list"))
				ssetest.WantText(t, "the list in the session in its place", upstreamtest.Recv(t, conn), `"name":"login"`)
			})
		}
	}
}

// A refusal of the question is no evidence that a server is stateless: an old one may want a scope for a method that it
// does not know, and take initialize. Where initialize does not say why it fails, the client hears why the question
// was refused.
func TestServersThatNeedAScope(t *testing.T) {
	const lacks = "the login lacks the scope x"
	answers := func(code int, body string) upstreamtest.Handler {
		return func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			if m == nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		serve upstreamtest.Handler // but for the question
		want  string               // in the answer to initialize
	}{
		"an old server":                       {legacyServer, `"result":{"protocolVersion"`},
		"an old server of HTTP+SSE":           {sseOnly(405), `"result":{"protocolVersion"`},
		"a stateless server":                  {modernServer, lacks},
		"a stateless server, unknown method":  {answers(404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`), lacks},
		"no server for initialize":            {answers(404, ""), lacks},
		"initialize wants the scope too":      {answers(403, ""), lacks},
		"an error of initialize":              {answers(400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such version"}}`), "no such version"},
		"a reason why initialize is refused":  {answers(422, `{"message":"API key missing"}`), "API key missing"},
		"an error of initialize, as a result": {answers(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such version"}}`), "no such version"},
	} {
		t.Run(name, func(t *testing.T) {
			s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m != nil && m.Method == "server/discover" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				test.serve(w, r, m)
			})
			p := &person{full: lacks, public: lacks}
			p.loggedIn.Store(true)
			conn := dialFor(t, remote.URL{Address: s.URL + "/mcp", Credentials: p})
			upstreamtest.Send(t, conn, upstreamtest.Initialize)
			ssetest.WantText(t, "the answer to initialize", upstreamtest.Recv(t, conn), test.want)
			ssetest.Want(t, "questions for the client", p.asked.Load(), int32(0))
		})
	}
}

// A server that wants a login for the question alone is asked nothing more: the login is asked for. So is one of
// HTTP+SSE that refuses the POST for its method, and its stream for want of a login.
func TestServersThatWantALoginForTheQuestion(t *testing.T) {
	for name, url := range map[string]string{
		"streamable": closedTo(t, "server/discover", legacyServer),
		"sse": upstreamtest.Serve(t, func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			w.WriteHeader(map[bool]int{true: http.StatusUnauthorized, false: http.StatusMethodNotAllowed}[m == nil])
		}).URL,
	} {
		p := &person{full: "log in at L", public: "log in at L"}
		conn := dialFor(t, remote.URL{Address: url, Credentials: p})
		upstreamtest.Send(t, conn, upstreamtest.Initialize)
		ssetest.WantText(t, name, upstreamtest.Recv(t, conn), "Nobody is logged in")
		ssetest.Want(t, "sessions in the place of one", p.opened.Load(), int32(1))
		ssetest.Want(t, "questions for the client", p.asked.Load(), int32(0))
	}
}

// So it is while the issuer cannot renew a login, but for clients, which get a session in the place of one with the
// server. A list that is refused retires a session for that.
func TestLoginsThatCannotBeUsed(t *testing.T) {
	for name, serve := range map[string]upstreamtest.Handler{"streamable": legacyServer, "stateless": modernServer} {
		t.Run(name, func(t *testing.T) {
			p := &person{full: "the issuer fails", public: "call again later"}
			up := remote.URL{Address: closedTo(t, "", serve), Credentials: p}
			p.hindered.Store(true)
			p.loggedIn.Store(true)
			p.refuses.Store(true)
			conn := dialFor(t, up)
			upstreamtest.Send(t, conn, upstreamtest.Initialize)
			ssetest.WantText(t, "initialize", upstreamtest.Recv(t, conn), `"message":"call again later"`)
			_, err := up.Dial(t.Context())
			ssetest.WantText(t, "Dial for no client", err, "the issuer fails")
			p.hindered.Store(false)
			p.refuses.Store(false)
			_, err = conn.Recv()
			ssetest.WantText(t, "the end", err, "somebody is logged in")

			conn = dialFor(t, up)
			upstreamtest.Send(t, conn, upstreamtest.Initialize)
			upstreamtest.Recv(t, conn)
			upstreamtest.Send(t, conn, upstreamtest.Initialized)
			upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
			ssetest.WantText(t, "the list", upstreamtest.Recv(t, conn), `"result"`)
			p.hindered.Store(true)
			p.refuses.Store(true)
			upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":6,"method":"tools/list"}`)
			retired := make(chan jsonrpc.ID, 1)
			conn.(retirable).OnRetire(func(request jsonrpc.ID, _ error) { retired <- request })
			go func() { _, _ = conn.Recv() }() // ends with the session
			ssetest.Want(t, "the request that it has not taken", <-retired, jsonrpc.ID("6"))
			ssetest.Want(t, "questions for the client", p.asked.Load(), int32(1)) // on account of the list
		})
	}
}

// A header that a client has under another name is the server's own, and wins over a login.
func TestRenamedHeaders(t *testing.T) {
	var got atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization") + "|" + r.Header.Get("X-Jira-Token"))
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		legacyServer(w, r, m)
	}))
	defer s.Close()
	p := new(person)
	p.loggedIn.Store(true)
	up := remote.URL{Address: s.URL + "/mcp", Credentials: p, Rename: map[string]string{"X-Jira-Token": "Authorization"}, Transport: remote.TransportStreamable}
	for header, want := range map[string]string{"Bearer mine": "Bearer mine|", "": "Bearer good|"} {
		ctx := t.Context()
		if header != "" {
			ctx = asker.NewContext(ctx, &asker.Asker{Header: http.Header{"X-Jira-Token": {header}}})
		}
		conn, err := up.Dial(ctx)
		ssetest.Must(t, err)
		upstreamtest.Send(t, conn, upstreamtest.Initialize)
		upstreamtest.Recv(t, conn)
		ssetest.Want(t, "the server gets", got.Load(), any(want))
		ssetest.Must(t, conn.Close())
	}
}

// Nobody is asked for a login on account of a notification, or of a session that no client has caused.
func TestOwnMessagesAskNobody(t *testing.T) {
	for method, ctx := range map[string]context.Context{
		"notifications/initialized": asker.NewContext(t.Context(), &asker.Asker{}), "tools/call": t.Context(),
	} {
		t.Run(method, func(t *testing.T) {
			p := &person{full: "log in at L", public: "log in"}
			conn, err := remote.URL{Address: closedTo(t, method, legacyServer), Credentials: p}.Dial(ctx)
			ssetest.Must(t, err)
			upstreamtest.Send(t, conn, upstreamtest.Initialize)
			upstreamtest.Recv(t, conn)
			upstreamtest.Send(t, conn, upstreamtest.Initialized)
			upstreamtest.Send(t, conn, upstreamtest.Call2)
			upstreamtest.Recv(t, conn)
			ssetest.Must(t, conn.Close())
			ssetest.Want(t, "questions for a client", p.asked.Load(), int32(0))
			ssetest.Want(t, "advice on no client's account", p.quietly.Load() > 0, true)
		})
	}
}

// A call that is refused for want of a login asks in the shape that the client understands: a client that has its person
// visit addresses gets the address so, all others as text.
func TestVisitsForALogin(t *testing.T) {
	const (
		visits  = `{"elicitation":{"url":{}}}`
		session = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`
	)
	modern := func(capabilities, visit string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + visit + `}}}`
	}
	byError := []string{`"error":{"code":-32042`, `"url":"https://issuer.example/a"`, `"mode":"url"`}
	asText := []string{`"result":{`, `"isError":true`, "log in at https://issuer.example/a"}
	for name, test := range map[string]struct {
		serve                    upstreamtest.Handler
		capabilities, call, link string
		want                     []string
	}{
		"sessions":                        {legacyServer, visits, session, "https://issuer.example/a", byError},
		"sessions, forms alone":           {legacyServer, `{"elicitation":{}}`, session, "https://issuer.example/a", asText},
		"sessions, no link":               {legacyServer, visits, session, "", asText},
		"session before a stateless one":  {modernServer, visits, session, "https://issuer.example/a", byError},
		"the same, forms alone":           {modernServer, `{"elicitation":{"form":{}}}`, session, "https://issuer.example/a", asText},
		"stateless":                       {modernServer, `{}`, modern(visits, ""), "https://issuer.example/a", byError},
		"stateless, the person was there": {modernServer, `{}`, modern(visits, agreed), "https://issuer.example/a", byError},
		"stateless, forms alone":          {modernServer, visits, modern(`{"elicitation":{"form":{}}}`, ""), "https://issuer.example/a", asText},
	} {
		t.Run(name, func(t *testing.T) {
			text := "log in at https://issuer.example/a"
			p := &person{full: text, public: text, link: test.link}
			conn := dialFor(t, remote.URL{Address: closedTo(t, "tools/call", test.serve), Credentials: p})
			upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+test.capabilities+`,"clientInfo":{"name":"t","version":"1"}}}`)
			upstreamtest.Recv(t, conn)
			upstreamtest.Send(t, conn, upstreamtest.Initialized)
			upstreamtest.Send(t, conn, test.call)
			ssetest.WantText(t, "answer", upstreamtest.Recv(t, conn), test.want...)
		})
	}
}

// waiter is a person who takes a while to log in.
type waiter struct{ person }

func (w *waiter) Accepted() {}

func (w *waiter) LoginNeeded() (string, bool) { return "", false }

func (w *waiter) IsStalled() bool { return false }

func (w *waiter) AwaitLogin(ctx context.Context) bool {
	_, isBounded := ctx.Deadline()
	w.loggedIn.Store(isBounded)
	return isBounded
}

// agreed is the member of _meta that says that the person of a call has agreed to the visit.
const agreed = `,"io.github.mcp-sse/visit":"accept"`

// A call that comes again once its person has agreed to the visit waits for the login, and goes on after it. The server
// does not hear of the visit.
func TestCallsWaitAfterAVisit(t *testing.T) {
	for visit, want := range map[string]string{
		agreed: `"result":{"resultType":"complete"`, `,"io.github.mcp-sse/visit":"decline"`: `"error":{"code":-32042,"message":"log in at L"`, "": `"error":{"code":-32042`,
	} {
		w := &waiter{person{full: "log in at L", public: "log in at L", link: "L"}}
		conn := dialFor(t, remote.URL{Address: closedTo(t, "tools/call", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m != nil && strings.Contains(string(m.Raw()), "mcp-sse/visit") {
				t.Errorf("the server got %s", m.Raw())
			}
			modernServer(w, r, m)
		}), Credentials: w})
		upstreamtest.Send(t, conn, upstreamtest.Initialize)
		upstreamtest.Recv(t, conn)
		upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x",`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}`+visit+`}}}`)
		ssetest.WantText(t, visit, upstreamtest.Recv(t, conn), want)
	}
}

// renewer are credentials whose first token the server takes for messages alone.
type renewer struct{ refused chan string }

func (r renewer) Authorizer(func() string, *slog.Logger) remote.Authorizer {
	var renewed atomic.Bool
	return func(_ context.Context, refused string) (string, error) {
		if refused != "" {
			r.refused <- refused
			renewed.Store(true)
		}
		if renewed.Load() {
			return "Bearer new", nil
		}
		return "Bearer old", nil
	}
}

// A 401 at the GET of a session's stream is averted by another token, as at any message: what the server says there
// reaches the client.
func TestStreamIsOpenedWithANewToken(t *testing.T) {
	gets := make(chan string, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, _ := io.ReadAll(r.Body)
			m, _ := jsonrpc.Parse(body)
			legacyServer(w, r, m)
			return
		}
		header := r.Header.Get("Authorization")
		gets <- header
		if header != "Bearer new" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		upstreamtest.Stream(w)("data: %s", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	r := renewer{make(chan string, 8)}
	conn := dialFor(t, remote.URL{Address: s.URL + "/mcp", Credentials: r, Transport: remote.TransportStreamable})
	upstreamtest.Send(t, conn, upstreamtest.Initialize)
	upstreamtest.Recv(t, conn)
	upstreamtest.Send(t, conn, upstreamtest.Initialized)
	ssetest.WantText(t, "from the stream", upstreamtest.Recv(t, conn), "list_changed")
	ssetest.Want(t, "the first GET", <-gets, "Bearer old")
	ssetest.Want(t, "the second GET", <-gets, "Bearer new")
	ssetest.Want(t, "the token that was refused", <-r.refused, "Bearer old")
	ssetest.Want(t, "more GETs and refusals", len(gets)+len(r.refused), 0)
}
