package mcpgo

import (
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func TestSubscriptionsAreBounded(t *testing.T) {
	var s state
	uri := "test://" + strings.Repeat("x", 1000)
	for _, u := range []string{"b", "a", "a"} {
		s.SubscribeToResource(u)
	}
	if got := s.SubscribedResources(); !slices.Equal(got, []string{"a", "b"}) || !s.IsSubscribedToResource("a") {
		t.Errorf("subscribed to %q", got)
	}
	for i := range 2000 {
		if s.SubscribeToResourceErr(uri+strings.Repeat("y", i)) != nil {
			break
		}
	}
	if s.subscribedBytes > maxSubscribed || len(s.subscribed) < 100 || len(s.subscribed) > 1000 {
		t.Errorf("%d subscriptions of %d bytes", len(s.subscribed), s.subscribedBytes)
	}
	for _, u := range s.SubscribedResources() {
		s.UnsubscribeFromResource(u)
		s.UnsubscribeFromResource(u)
	}
	if len(s.subscribed) != 0 || s.subscribedBytes != 0 {
		t.Errorf("%d subscriptions of %d bytes are left", len(s.subscribed), s.subscribedBytes)
	}
}

// What mcp-go gets of a session's tools may be changed.
func TestToolsAreCopies(t *testing.T) {
	var s state
	tools := map[string]server.ServerTool{"a": {}}
	s.SetSessionTools(tools)
	tools["b"] = server.ServerTool{}
	got := s.GetSessionTools()
	got["c"] = server.ServerTool{}
	if got := s.GetSessionTools(); len(got) != 1 {
		t.Errorf("got %v, want only a", got)
	}
}

func TestLogLevel(t *testing.T) {
	var s state
	if got := s.GetLogLevel(); got != mcp.LoggingLevelError {
		t.Errorf("got %s, want error", got)
	}
	s.SetLogLevel(mcp.LoggingLevelDebug)
	if got := s.GetLogLevel(); got != mcp.LoggingLevelDebug {
		t.Errorf("got %s, want debug", got)
	}
	s.Initialize()
	if got := s.GetLogLevel(); got != mcp.LoggingLevelError || !s.Initialized() {
		t.Errorf("got %s, want error after Initialize", got)
	}
}
