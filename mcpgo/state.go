package mcpgo

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/server"
)

// maxSubscribed bounds the URIs that one session is subscribed to, in bytes, with
// subscriptionCost for each.
const (
	maxSubscribed    = 1 << 20
	subscriptionCost = 64
)

var errSubscriptions = errors.New("the session has too many subscriptions")

// known is what mcp-go keeps of initialize and logging/setLevel.
type known interface {
	server.SessionWithClientInfo
	server.SessionWithLogging
}

// sdkState is what mcp-go keeps with a session. It is safe for concurrent use.
type sdkState struct {
	known // of a server.InProcessSession, which as a whole mcp-go would let ask any client

	mu sync.Mutex // guards all below
	// These are replaced, never changed.
	tools     map[string]server.ServerTool
	resources map[string]server.ServerResource
	templates map[string]server.ServerResourceTemplate

	subscribed      map[string]struct{} // nil: none
	subscribedBytes int
}

// get returns the value at p, which mu guards.
func get[T any](s *sdkState, p *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *p
}

// set sets the value at p, which mu guards.
func set[T any](s *sdkState, p *T, v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*p = v
}

// GetSessionTools returns a copy of the session's own tools.
func (s *sdkState) GetSessionTools() map[string]server.ServerTool {
	return maps.Clone(get(s, &s.tools))
}

// SetSessionTools sets the session's own tools.
func (s *sdkState) SetSessionTools(tools map[string]server.ServerTool) {
	set(s, &s.tools, maps.Clone(tools))
}

// GetSessionResources returns a copy of the session's own resources.
func (s *sdkState) GetSessionResources() map[string]server.ServerResource {
	return maps.Clone(get(s, &s.resources))
}

// SetSessionResources sets the session's own resources.
func (s *sdkState) SetSessionResources(resources map[string]server.ServerResource) {
	set(s, &s.resources, maps.Clone(resources))
}

// GetSessionResourceTemplates returns a copy of the session's own templates.
func (s *sdkState) GetSessionResourceTemplates() map[string]server.ServerResourceTemplate {
	return maps.Clone(get(s, &s.templates))
}

// SetSessionResourceTemplates sets the session's own templates.
func (s *sdkState) SetSessionResourceTemplates(templates map[string]server.ServerResourceTemplate) {
	set(s, &s.templates, maps.Clone(templates))
}

// SubscribeToResource is SubscribeToResourceErr without its error.
func (s *sdkState) SubscribeToResource(uri string) { _ = s.SubscribeToResourceErr(uri) }

// SubscribeToResourceErr subscribes the session to a resource. It fails if the URIs are
// over 1 MiB together.
func (s *sdkState) SubscribeToResourceErr(uri string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.subscribed[uri]; ok {
		return nil
	}
	size := len(uri) + subscriptionCost
	if s.subscribedBytes+size > maxSubscribed {
		return errSubscriptions
	}
	if s.subscribed == nil {
		s.subscribed = make(map[string]struct{})
	}
	s.subscribed[uri] = struct{}{}
	s.subscribedBytes += size
	return nil
}

// UnsubscribeFromResource ends a subscription.
func (s *sdkState) UnsubscribeFromResource(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.subscribed[uri]; ok {
		delete(s.subscribed, uri)
		s.subscribedBytes -= len(uri) + subscriptionCost
	}
}

// SubscribedResources returns the URIs of the subscriptions, sorted.
func (s *sdkState) SubscribedResources() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.subscribed))
}

// IsSubscribedToResource reports whether the session is subscribed to a resource.
func (s *sdkState) IsSubscribedToResource(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.subscribed[uri]
	return ok
}
