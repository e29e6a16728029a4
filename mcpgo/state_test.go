package mcpgo

import (
	"slices"
	"strings"
	"testing"
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
