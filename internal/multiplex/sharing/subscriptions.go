package sharing

import (
	"maps"
	"slices"
	"strings"
)

// MaxSubscriptions and MaxSubscriptionBytes bound the subscriptions of one client: their
// number, and the length of their URIs together.
const (
	MaxSubscriptions     = 1024
	MaxSubscriptionBytes = 256 << 10
)

// Subscriptions records which clients subscribe to which resources, by URI. The
// server sees the first subscription to a resource and the end of the last.
type Subscriptions[C comparable] struct {
	clients map[string][]C
	uris    map[C]map[string]struct{} // of a client
}

// Subscribe adds a client to the subscribers of a resource that has some, and
// reports whether the client subscribes now. If not, the caller must ask the server
// first and then call Add, unless the client has too many subscriptions.
func (s *Subscriptions[C]) Subscribe(uri string, c C) (done, tooMany bool) {
	bytes := len(uri)
	for other := range s.uris[c] {
		bytes += len(other)
	}
	clients := s.clients[uri]
	switch {
	case slices.Contains(clients, c):
		return true, false
	case len(s.uris[c]) >= MaxSubscriptions, bytes > MaxSubscriptionBytes:
		return false, true
	case len(clients) == 0:
		return false, false
	}
	s.Add(uri, c)
	return true, false
}

// Add adds a client to the subscribers of a resource.
func (s *Subscriptions[C]) Add(uri string, c C) {
	if s.clients == nil {
		s.clients, s.uris = make(map[string][]C), make(map[C]map[string]struct{})
	}
	if s.uris[c] == nil {
		s.uris[c] = make(map[string]struct{})
	}
	s.clients[uri] = append(s.clients[uri], c)
	s.uris[c][uri] = struct{}{}
}

// Unsubscribe removes a client from the subscribers of a resource, and reports
// whether none are left. Then the caller must tell the server.
func (s *Subscriptions[C]) Unsubscribe(uri string, c C) bool {
	clients := s.clients[uri]
	i := slices.Index(clients, c)
	if i < 0 {
		return len(clients) == 0
	}
	if delete(s.uris[c], uri); len(s.uris[c]) == 0 {
		delete(s.uris, c)
	}
	if len(clients) == 1 {
		delete(s.clients, uri)
		return true
	}
	s.clients[uri] = slices.Delete(clients, i, i+1)
	return false
}

// Leave removes a client from all subscriptions, and returns the URIs that have
// no subscribers left.
func (s *Subscriptions[C]) Leave(c C) (uris []string) {
	for uri := range s.uris[c] {
		if s.Unsubscribe(uri, c) {
			uris = append(uris, uri)
		}
	}
	return uris
}

// Updated returns the clients to tell that a resource has changed. The URI "might be
// a sub-resource of the one that the client actually subscribed to" (MCP 2025-11-25,
// schema), so these are the subscribers of the resource and of those that contain
// it.
func (s *Subscriptions[C]) Updated(uri string) []C {
	found := make(map[C]bool) // a client may subscribe to several of them
	add := func(length int) {
		for _, c := range s.clients[uri[:length]] {
			found[c] = true
		}
	}
	add(len(uri))
	for i, char := range uri {
		if !strings.ContainsRune("/?#", char) {
			continue
		}
		add(i)
		if char == '/' && i+1 < len(uri) {
			add(i + 1)
		}
	}
	return slices.Collect(maps.Keys(found))
}

// Subscribes reports whether a client subscribes to any resource.
func (s *Subscriptions[C]) Subscribes(c C) bool { return len(s.uris[c]) > 0 }
