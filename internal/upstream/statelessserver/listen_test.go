package statelessserver_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// changing is what a server tells of itself whose lists change.
const changing = `{"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":false},"resources":{"listChanged":true,"subscribe":true}}}`

// listening runs a test with a server that acknowledges each subscriptions/listen, but
// honours no "nobody://tells", and keeps its response open.
func listening(t *testing.T, test func(t *testing.T, s *scripted)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStateless(t, changing, func(p *post) {
			if p.m.Method == "subscriptions/listen" {
				p.acknowledge()
				<-p.r.Context().Done()
			}
		})
		s.initialize(`{}`)
		s.wantListens(lists)
		test(t, s)
	})
}

// wantListens checks the filters of the listens that are open.
func (s *scripted) wantListens(want ...string) {
	s.t.Helper()
	synctest.Wait()
	var open []string
	for _, p := range s.seen("subscriptions/listen") {
		if p.r.Context().Err() == nil {
			open = append(open, p.param("notifications"))
		}
	}
	if !slices.Equal(open, want) {
		s.t.Fatalf("listens for %q, want %q", open, want)
	}
}

func subscribe(id, uri string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`
}

func unsubscribe(id, uri string) string {
	return strings.Replace(subscribe(id, uri), "subscribe", "unsubscribe", 1)
}

func done(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

const lists = `{"toolsListChanged":true,"resourcesListChanged":true}`

func TestListChangedComesFromAListen(t *testing.T) {
	listening(t, func(t *testing.T, s *scripted) {
		p := s.seen("subscriptions/listen")[0]
		if p.r.Header.Get("Mcp-Method") != "subscriptions/listen" || p.meta("clientInfo") == "" {
			t.Errorf("the listen has the headers %v, params %s", p.r.Header, p.m.Params())
		}
		p.event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID,"x":1.50}}}`)
		s.Gets(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":1.50}}}`)
		p.event(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
		s.Gets(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	})
}

// Each resource has a listen of its own, beside the one for the lists.
func TestSubscriptionsAreListens(t *testing.T) {
	listening(t, func(t *testing.T, s *scripted) {
		s.Send(subscribe("1", "a://1"))
		s.want(done("1"))
		s.Send(subscribe("2", "a://2"))
		s.want(done("2"))
		s.Send(subscribe("3", "nobody://tells"))
		s.WantError("3", "not_subscribed")
		s.Send(subscribe("4", "a://2")) // again: nothing changes
		s.want(done("4"))
		s.wantListens(lists, `{"resourceSubscriptions":["a://1"]}`, `{"resourceSubscriptions":["a://2"]}`)
		s.seen("subscriptions/listen")[2].event(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1/sub","_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}`)
		s.Gets(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1/sub","_meta":{}}}`)
		s.Send(unsubscribe("5", "a://1"))
		s.want(done("5"))
		s.wantListens(lists, `{"resourceSubscriptions":["a://2"]}`)
		if n := len(s.seen("resources/subscribe")) + len(s.seen("resources/unsubscribe")); n > 0 {
			t.Errorf("the server got %d requests that it does not know", n)
		}
	})
}

func TestSubscriptionsAreBounded(t *testing.T) {
	listening(t, func(t *testing.T, s *scripted) {
		for i := range 256 {
			s.Send(subscribe(strconv.Itoa(i), "a://"+strconv.Itoa(i)))
			s.want(done(strconv.Itoa(i)))
		}
		s.Send(subscribe("9999", "a://more"))
		s.WantError("9999", "too_many_subscriptions")
		s.Send(subscribe("10000", ""))
		s.WantError("10000", "-32602")
	})
}
