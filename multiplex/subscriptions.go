package multiplex

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
	methodUpdated     = "notifications/resources/updated"

	// maxSubscriptions bounds those of one client, maxURI each of them in bytes.
	maxSubscriptions = 1024
	maxURI           = 8 << 10
)

// subscriptions are who wants to know of changes of a resource, by its URI.
// Guarded by Session.mu.
type subscriptions map[string][]*Port

// subscriptionTurnLocked decides about a request to subscribe to a resource of a
// shared session or the opposite: the server hears of the first who wants it and
// of the last who no longer does.
func (s *Session) subscriptionTurnLocked(p *pending) verdict {
	who := s.subscriptions[p.uri]
	if p.method == methodUnsubscribe {
		if len(s.unsubscribedLocked(p.uri, p.port)) > 0 {
			return known
		}
		return goes
	}
	if slices.Contains(who, p.port) {
		return known
	}
	if p.port.subscribed >= maxSubscriptions {
		return refused
	}
	if len(who) > 0 {
		s.subscribedLocked(p)
		return known
	}
	return goes
}

// subscribedLocked notes that a port gets the updates of a resource.
func (s *Session) subscribedLocked(p *pending) {
	if s.subscriptions == nil {
		s.subscriptions = make(subscriptions)
	}
	s.subscriptions[p.uri] = append(s.subscriptions[p.uri], p.port)
	p.port.subscribed++
}

// unsubscribedLocked notes the opposite, and returns who is left.
func (s *Session) unsubscribedLocked(uri string, t *Port) []*Port {
	who := s.subscriptions[uri]
	i := slices.Index(who, t)
	if i < 0 {
		return who
	}
	t.subscribed--
	who = slices.Delete(slices.Clone(who), i, i+1)
	if len(who) == 0 {
		delete(s.subscriptions, uri)
		return nil
	}
	s.subscriptions[uri] = who
	return who
}

// endSubscriptionsLocked ends those of a port that leaves. Where it was asking for
// one the server may have heard of it, so it hears of the end too.
func (s *Session) endSubscriptionsLocked(t *Port, asked []string) {
	for uri := range s.subscriptions {
		if slices.Contains(s.subscriptions[uri], t) && len(s.unsubscribedLocked(uri, t)) == 0 {
			asked = append(asked, uri)
		}
	}
	for _, uri := range asked {
		quoted, _ := json.Marshal(uri) // a string always has a JSON form
		s.ownLocked(methodUnsubscribe, `{"uri":`+string(quoted)+`}`, uri)
	}
}

// updatedLocked returns who is told that a resource has changed: the URI "might be
// a sub-resource of the one that the client actually subscribed to" (MCP
// 2025-11-25, schema), so those who have subscribed to it or to what it is part
// of, and all who have subscribed to anything when nobody has to that.
func (s *Session) updatedLocked(uri string) []*Port {
	var told portSet
	told.add(s.subscriptions[uri])
	for i, c := range uri {
		if !strings.ContainsRune("/?#", c) {
			continue
		}
		told.add(s.subscriptions[uri[:i]])
		if c == '/' && i+1 < len(uri) {
			told.add(s.subscriptions[uri[:i+1]])
		}
	}
	if len(told.ports) == 0 {
		for _, who := range s.subscriptions {
			told.add(who)
		}
	}
	return told.ports
}

// portSet is ports, each once.
type portSet struct {
	ports []*Port
	seen  map[*Port]bool // nil while no second list has come
}

func (c *portSet) add(ports []*Port) {
	switch {
	case len(ports) == 0:
		return
	case len(c.ports) == 0:
		c.ports = slices.Clip(ports)
		return
	case c.seen == nil:
		c.seen = make(map[*Port]bool)
		for _, t := range c.ports {
			c.seen[t] = true
		}
	}
	for _, t := range ports {
		if !c.seen[t] {
			c.seen[t] = true
			c.ports = append(c.ports, t)
		}
	}
}

// resourceUpdated passes on that a resource has changed.
func (s *Session) resourceUpdated(m *jsonrpc.Message) {
	at, _ := m.Param("uri")
	uri, _ := jsonrpc.Text(m.At(at))
	s.mu.Lock()
	ports := s.updatedLocked(uri)
	s.mu.Unlock()
	deliver(ports, m.Method, m.Raw())
}
