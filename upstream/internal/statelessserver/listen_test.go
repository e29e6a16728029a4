package statelessserver_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/upstream/internal/statelessserver"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

// changing is what a server tells of itself whose lists change.
const changing = `{"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":false},"resources":{"listChanged":true,"subscribe":true}}}`

// subscribable is one whose lists stay.
const subscribable = `{"capabilities":{"resources":{"subscribe":true}}}`

// listener is a scripted server that acknowledges each subscriptions/listen, and
// keeps its response open.
type listener struct {
	*scripted
	opened chan *post    // each listen
	closed chan string   // the filter of each listen that the client has closed
	events chan string   // sent on the listen that reads it first
	end    chan struct{} // ends one listen
}

func newListener(t *testing.T, discovered string) *listener {
	l := &listener{
		opened: make(chan *post, 1000), closed: make(chan string, 1000),
		events: make(chan string), end: make(chan struct{}),
	}
	l.scripted = newStateless(t, discovered, func(p *post) {
		if p.m.Method != "subscriptions/listen" {
			p.result(`{}`)
			return
		}
		l.serve(p)
	})
	return l
}

func (l *listener) serve(p *post) {
	honoured := p.param("notifications")
	honoured = strings.ReplaceAll(honoured, `"nobody://tells"`, `"x"`)
	l.opened <- p
	p.event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID},"notifications":` + honoured + `}}`)
	for {
		select {
		case msg := <-l.events:
			p.event(msg)
		case <-l.end:
			return
		case <-p.r.Context().Done():
			l.closed <- p.param("notifications")
			return
		}
	}
}

// open waits for the next listen and checks its filter.
func (l *listener) open(want string) *post {
	l.t.Helper()
	select {
	case p := <-l.opened:
		if got := p.param("notifications"); got != want {
			l.t.Fatalf("a listen for %s, want %s", got, want)
		}
		return p
	case <-time.After(upstreamtest.Patience):
		l.t.Fatalf("no listen for %s", want)
	}
	return nil
}

// close waits until the client has closed the listen with that filter.
func (l *listener) close(want string) {
	l.t.Helper()
	select {
	case got := <-l.closed:
		if got != want {
			l.t.Fatalf("the listen for %s was closed, want %s", got, want)
		}
	case <-time.After(upstreamtest.Patience):
		l.t.Fatalf("the listen for %s is open", want)
	}
}

func subscribe(id, uri string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`
}

func unsubscribe(id, uri string) string {
	return strings.Replace(subscribe(id, uri), "subscribe", "unsubscribe", 1)
}

func done(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

func TestListChangedComesFromAListen(t *testing.T) {
	l := newListener(t, changing)
	l.initialize(`{}`)
	p := l.open(`{"toolsListChanged":true,"resourcesListChanged":true}`)
	if p.r.Header.Get("Mcp-Method") != "subscriptions/listen" || p.meta("clientInfo") == "" {
		t.Errorf("the listen has the headers %v, params %s", p.r.Header, p.m.Params())
	}
	l.events <- p.fill(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID,"x":1.50}}}`)
	got, request := l.Recv()
	if got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":1.50}}}` || request != "" {
		t.Errorf("got %s with request %q", got, request)
	}
	l.events <- `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`
	l.want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
}

// Each resource has a listen of its own, beside the one for the lists.
func TestSubscriptionsAreListens(t *testing.T) {
	l := newListener(t, changing)
	l.initialize(`{}`)
	l.open(`{"toolsListChanged":true,"resourcesListChanged":true}`)
	l.Send(subscribe("1", "a://1"))
	l.want(done("1"))
	l.open(`{"resourceSubscriptions":["a://1"]}`)
	l.Send(subscribe("2", "a://2"))
	l.want(done("2"))
	second := l.open(`{"resourceSubscriptions":["a://2"]}`)
	l.events <- second.fill(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1/sub","_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}`)
	l.want(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1/sub","_meta":{}}}`)
	l.Send(subscribe("3", "a://2")) // again: nothing changes
	l.want(done("3"))
	l.Send(unsubscribe("4", "a://1"))
	l.want(done("4"))
	l.close(`{"resourceSubscriptions":["a://1"]}`)
	if n := len(l.seen("subscriptions/listen")); n != 3 {
		t.Errorf("there were %d listens", n)
	}
	if n := len(l.seen("resources/subscribe")) + len(l.seen("resources/unsubscribe")); n > 0 {
		t.Errorf("the server got %d requests that it does not know", n)
	}
}

func TestSubscriptionThatTheServerDoesNotHonourFails(t *testing.T) {
	l := newListener(t, subscribable)
	l.initialize(`{}`)
	l.Send(subscribe("1", "nobody://tells"))
	l.wantError("1", "not_subscribed")
	l.Send(subscribe("2", "a://2"))
	l.want(done("2"))
	l.open(`{"resourceSubscriptions":["nobody://tells"]}`)
	l.open(`{"resourceSubscriptions":["a://2"]}`)
}

// answers returns the next n messages.
func (l *listener) answers(n int) map[string]bool {
	all := make(map[string]bool)
	for range n {
		got, _ := l.Recv()
		all[got] = true
	}
	return all
}

func TestSubscriptionsAreBounded(t *testing.T) {
	l := newListener(t, subscribable)
	l.initialize(`{}`)
	for i := range statelessserver.MaxSubscriptions {
		l.Send(subscribe(strconv.Itoa(i), "a://"+strconv.Itoa(i)))
	}
	if n := len(l.answers(statelessserver.MaxSubscriptions)); n != statelessserver.MaxSubscriptions {
		t.Fatalf("%d answers", n)
	}
	l.Send(subscribe("9999", "a://more"))
	l.wantError("9999", "too_many_subscriptions")
	l.Send(subscribe("10000", ""))
	l.wantError("10000", "-32602")
}
