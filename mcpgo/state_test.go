package mcpgo

import (
	"slices"
	"strings"
	"testing"
)

func TestSubscriptionsAreBounded(t *testing.T) {
	var s sdkState
	for _, uri := range []string{"b", "a", "a"} {
		s.SubscribeToResource(uri)
	}
	if got := s.SubscribedResources(); !slices.Equal(got, []string{"a", "b"}) || !s.IsSubscribedToResource("a") {
		t.Errorf("subscribed to %q", got)
	}
	for n := 0; s.SubscribeToResourceErr(strings.Repeat("x", 1000+n)) == nil; n++ {
	}
	if n := len(s.subscribed); s.subscribedBytes > maxSubscribed || n < 100 || n > 1000 {
		t.Errorf("%d subscriptions of %d bytes", n, s.subscribedBytes)
	}
	for _, uri := range append(s.SubscribedResources(), "a") {
		s.UnsubscribeFromResource(uri)
	}
	if len(s.subscribed) != 0 || s.subscribedBytes != 0 {
		t.Errorf("%d subscriptions of %d bytes are left", len(s.subscribed), s.subscribedBytes)
	}
}
