package mcpgo

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// maxSubscribed bounds the URIs that one session is subscribed to, in bytes, with
// subscriptionCost for each.
const (
	maxSubscribed    = 1 << 20
	subscriptionCost = 64
)

var errSubscriptions = errors.New("the session has too many subscriptions")

// state is what mcp-go keeps with a session. It is safe for concurrent use.
type state struct {
	mu          sync.Mutex // guards all below
	initialized bool
	level       mcp.LoggingLevel // empty: as mcp-go's sessions, error

	client       mcp.Implementation
	capabilities mcp.ClientCapabilities
	version      string

	// These are replaced, never changed.
	tools     map[string]server.ServerTool
	resources map[string]server.ServerResource
	templates map[string]server.ServerResourceTemplate

	subscribed      map[string]struct{} // nil: none
	subscribedBytes int
}

// get returns the value at p, which mu guards.
func get[T any](s *state, p *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *p
}

// set sets the value at p, which mu guards.
func set[T any](s *state, p *T, v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*p = v
}

// Initialize makes the session take notifications, with the log level error.
func (s *state) Initialize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initialized, s.level = true, mcp.LoggingLevelError
}

// Initialized reports whether the session takes notifications.
func (s *state) Initialized() bool { return get(s, &s.initialized) }

// SetLogLevel sets the least level of log messages that the client wants.
func (s *state) SetLogLevel(level mcp.LoggingLevel) { set(s, &s.level, level) }

// GetLogLevel returns the least level of log messages that the client wants.
func (s *state) GetLogLevel() mcp.LoggingLevel {
	if level := get(s, &s.level); level != "" {
		return level
	}
	return mcp.LoggingLevelError
}

// GetClientInfo returns what the client said of itself.
func (s *state) GetClientInfo() mcp.Implementation { return get(s, &s.client) }

// SetClientInfo sets what the client said of itself.
func (s *state) SetClientInfo(client mcp.Implementation) { set(s, &s.client, client) }

// GetClientCapabilities returns what the client declared to support.
func (s *state) GetClientCapabilities() mcp.ClientCapabilities { return get(s, &s.capabilities) }

// SetClientCapabilities sets what the client declared to support.
func (s *state) SetClientCapabilities(c mcp.ClientCapabilities) { set(s, &s.capabilities, c) }

// ProtocolVersion returns the version of MCP that the session uses.
func (s *state) ProtocolVersion() string { return get(s, &s.version) }

// SetProtocolVersion sets the version of MCP that the session uses.
func (s *state) SetProtocolVersion(version string) { set(s, &s.version, version) }

// GetSessionTools returns a copy of the session's own tools.
func (s *state) GetSessionTools() map[string]server.ServerTool { return maps.Clone(get(s, &s.tools)) }

// SetSessionTools sets the session's own tools.
func (s *state) SetSessionTools(tools map[string]server.ServerTool) {
	set(s, &s.tools, maps.Clone(tools))
}

// GetSessionResources returns a copy of the session's own resources.
func (s *state) GetSessionResources() map[string]server.ServerResource {
	return maps.Clone(get(s, &s.resources))
}

// SetSessionResources sets the session's own resources.
func (s *state) SetSessionResources(resources map[string]server.ServerResource) {
	set(s, &s.resources, maps.Clone(resources))
}

// GetSessionResourceTemplates returns a copy of the session's own templates.
func (s *state) GetSessionResourceTemplates() map[string]server.ServerResourceTemplate {
	return maps.Clone(get(s, &s.templates))
}

// SetSessionResourceTemplates sets the session's own templates.
func (s *state) SetSessionResourceTemplates(templates map[string]server.ServerResourceTemplate) {
	set(s, &s.templates, maps.Clone(templates))
}

// SubscribeToResource is SubscribeToResourceErr without its error.
func (s *state) SubscribeToResource(uri string) { _ = s.SubscribeToResourceErr(uri) }

// SubscribeToResourceErr subscribes the session to a resource. It fails if the URIs are
// over 1 MiB together.
func (s *state) SubscribeToResourceErr(uri string) error {
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
func (s *state) UnsubscribeFromResource(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.subscribed[uri]; ok {
		delete(s.subscribed, uri)
		s.subscribedBytes -= len(uri) + subscriptionCost
	}
}

// SubscribedResources returns the URIs of the subscriptions, sorted.
func (s *state) SubscribedResources() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.subscribed))
}

// IsSubscribedToResource reports whether the session is subscribed to a resource.
func (s *state) IsSubscribedToResource(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.subscribed[uri]
	return ok
}
