package gateway_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// options are those of a test: of a user, or with settings that no user has.
type options interface {
	gateway.Options | gateway.Settings
}

func settings[O options](opts O) gateway.Settings {
	if with, ok := any(opts).(gateway.Settings); ok {
		return with
	}
	return gateway.Settings{Options: any(opts).(gateway.Options)}
}

// inFakeTime runs a test in a synctest bubble, with a gateway in front of a test
// server and connections without HTTP. At the end it shuts all down; nothing may be
// left. If AnnounceDelay is zero, there is no delay: the synthetic initialize goes
// out at once.
func inFakeTime[O options](t *testing.T, u *server, opts O, test func(t *testing.T, g *gateway.Gateway)) {
	t.Helper()
	with := settings(opts)
	with.AnnounceDelay = cmp.Or(with.AnnounceDelay, -1)
	synctest.Test(t, func(t *testing.T) {
		g, err := gateway.NewWith(u, with)
		must(t, err)
		defer func() { // also after a t.Fatal, or the bubble would not end
			for _, c := range g.Registry().All() {
				c.Close("test over")
			}
			equal(t, "error", <-shutdown(g, time.Minute), nil)
			equal(t, "bytes are held after the end", metric(t, g, "mcp_sse_held_bytes"), 0)
			if n := u.open(); n > 0 {
				t.Errorf("%d sessions are left", n)
			}
		}()
		test(t, g)
	})
}

// peer is a client whose stream the test reads.
type peer struct {
	t    testing.TB
	c    whole
	each time.Duration

	mu  sync.Mutex
	got []connstate.Event
	ids []jsonrpc.ID // of the requests of the server
}

// connect opens a connection. The zero Client gets the announcement, and its
// dialect is undecided.
func connect(t testing.TB, g *gateway.Gateway, client connstate.Client) *peer {
	t.Helper()
	return connectSlow(t, g, client, 0)
}

// connectReady opens a connection and expects it to be ready.
func connectReady(t testing.TB, g *gateway.Gateway) *peer {
	t.Helper()
	p := connect(t, g, plain)
	p.wantState(connstate.Ready)
	return p
}

// connectSlow opens a connection whose client needs some time for each event.
func connectSlow(t testing.TB, g *gateway.Gateway, client connstate.Client, each time.Duration) *peer {
	t.Helper()
	opened, err := g.Registry().Open(client)
	must(t, err)
	c := wholeOf(opened)
	p := &peer{t: t, c: c, each: each}
	c.Bind(gateway.Accept(g, opened))
	events := make(chan connstate.Event, 1024)
	if each > 0 {
		events = make(chan connstate.Event, 1)
	}
	c.Attach(func(e connstate.Event) bool {
		select {
		case events <- e:
			return true
		default:
			return false
		}
	})
	c.StartAnnounceDelay()
	go p.read(g, events) // ends with the connection
	return p
}

// withClient runs a test in fake time with a plain client.
func withClient[O options](t *testing.T, u *server, opts O, test func(t *testing.T, p *peer)) {
	t.Helper()
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) { test(t, connect(t, g, plain)) })
}

// plain is a client without announcement and with a decided dialect.
var plain = connstate.Client{Dialect: connstate.EventMessage, Quiet: true}

func (p *peer) read(g *gateway.Gateway, events chan connstate.Event) {
	defer g.Registry().Remove(p.c.Connection)
	for {
		select {
		case e := <-events:
			time.Sleep(p.each)
			p.mu.Lock()
			p.got = append(p.got, e)
			p.mu.Unlock()
			p.c.Written(e.Size())
		case <-p.c.Done():
			return
		}
	}
}

// post sends messages as a client does.
func (p *peer) post(msgs ...string) {
	p.t.Helper()
	for _, raw := range msgs {
		m, err := jsonrpc.Parse([]byte(raw))
		if err != nil {
			p.t.Fatalf("parse %.80s: %v", raw, err)
		}
		p.c.Observe(m, "")
		p.c.Receive(m)
	}
}

// deliver is post until the messages have come as far as they can.
func (p *peer) deliver(msgs ...string) {
	p.t.Helper()
	p.post(msgs...)
	synctest.Wait()
}

// served sends a request and expects the standard answer of a session.
func (p *peer) served(id string, session int, method string) {
	p.t.Helper()
	p.post(request(id, method))
	p.want(answered(id, session, method))
}

// want expects exactly these events since the last call, in the short form of
// describe. A final * matches anything.
func (p *peer) want(want ...string) {
	p.t.Helper()
	p.compare(p.take(), want)
}

// take returns the events since the last call, in short form.
func (p *peer) take() []string {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	events := p.got
	p.got = nil
	p.mu.Unlock()
	got := make([]string, len(events))
	for i, e := range events {
		got[i] = describe(p.t, e)
		if m, _ := jsonrpc.Parse(e.Data); m != nil && m.Kind == jsonrpc.Request {
			p.ids = append(p.ids, m.ID)
		}
	}
	return got
}

func (p *peer) compare(got, want []string) {
	p.t.Helper()
	equal := slices.EqualFunc(got, want, func(g, w string) bool {
		if begin, ok := strings.CutSuffix(w, "*"); ok {
			return strings.HasPrefix(g, begin)
		}
		return g == w
	})
	if !equal {
		p.t.Errorf("the client got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// lastRequest returns the id of the last server request that want has seen.
func (p *peer) lastRequest(t testing.TB) jsonrpc.ID {
	t.Helper()
	if len(p.ids) == 0 {
		t.Fatal("the server has sent no request")
	}
	return p.ids[len(p.ids)-1]
}

func (p *peer) wantState(want connstate.State) {
	p.t.Helper()
	synctest.Wait()
	equal(p.t, "state", p.c.State(), want)
}

// describe returns the short form of an event, with the parts that matter to a
// client. The name of the event comes first, unless it is "message".
func describe(t testing.TB, e connstate.Event) string {
	t.Helper()
	m, err := jsonrpc.Parse(e.Data)
	if err != nil {
		t.Errorf("event %s holds no message: %s", e.Name, e.Data)
		return e.Name + ": ?"
	}
	what := describeMessage(t, m)
	if e.Name != connstate.EventMessage {
		return e.Name + ": " + what
	}
	return what
}

func describeMessage(t testing.TB, m *jsonrpc.Message) string {
	t.Helper()
	id := string(m.ID)
	if strings.HasPrefix(id, `"auto-initialize-`) {
		id = "auto"
	}
	switch {
	case m.Kind == jsonrpc.Notification:
		return m.Method
	case m.Kind == jsonrpc.Request:
		return "request " + m.Method
	case m.Error() == nil:
		return id + " " + string(m.Result())
	}
	var e struct {
		Code int
		Data struct {
			Type, Phase, Details, Reason string
			Attempt                      int
			RetryAfterMs                 *int64
			Retryable                    bool
		}
	}
	if err := json.Unmarshal(m.Error(), &e); err != nil {
		t.Errorf("error object: %v: %s", err, m.Raw())
	}
	switch {
	case e.Data.Type != "" && e.Code == jsonrpc.CodeInternalError && e.Data.RetryAfterMs != nil && e.Data.Details != "":
		return fmt.Sprintf("%s %s %s attempt %d", id, e.Data.Type, e.Data.Phase, e.Data.Attempt)
	case e.Data.Reason != "":
		return fmt.Sprintf("%s %s retryable=%t", id, e.Data.Reason, e.Data.Retryable)
	}
	return fmt.Sprintf("%s error %d", id, e.Code)
}

const (
	initialized   = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	serverResult  = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"played","version":"1.0"}}`
	emptyDeclared = `{}`
)

func request(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`
}

func initialize(id, version, capabilities string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":` + capabilities + `,"clientInfo":{"name":"peer","version":"0"}}}`
}

// answered returns the standard answer of a session to a request.
func answered(id string, session int, method string) string {
	return fmt.Sprintf(`%s {"session":%d,"method":"%s"}`, id, session, method)
}

// metric returns the value of a series without labels, or the sum over all.
func metric(t testing.TB, g *gateway.Gateway, name string) (sum float64) {
	t.Helper()
	for _, n := range seriesOf(t, g, name) {
		sum += n
	}
	return sum
}

// seriesOf returns the values of a metric, by labels.
func seriesOf(t testing.TB, g *gateway.Gateway, name string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for series, n := range ssetest.Series(t, gateway.PromRegistry(g)) {
		if labels, ok := strings.CutPrefix(series, name); ok && (labels == "" || labels[0] == '{') {
			all[labels] = n
		}
	}
	return all
}

// said returns what a client has received, in short form.
func said(t testing.TB, p interface{ received() []connstate.Event }) (got []string) {
	for _, e := range p.received() {
		got = append(got, describe(t, e))
	}
	return got
}

// The checks that are used everywhere, by short names.
var must, equal, wantText = ssetest.Must, ssetest.Want, ssetest.WantText

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// whole is a connection with the methods for its transport and for its handler.
type whole struct {
	*connstate.Connection
	connstate.ForTransport
	connstate.ForHandler
}

func wholeOf(c *connstate.Connection) whole {
	return whole{c, connstate.ForTransport{Connection: c}, connstate.ForHandler{Connection: c}}
}
