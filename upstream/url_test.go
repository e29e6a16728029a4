package upstream_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// The words for a transport are those that Dial knows.
func TestTransportsAreThoseOfDial(t *testing.T) {
	for ours, theirs := range map[upstream.Transport]string{
		upstream.TransportStreamable: remote.TransportStreamable,
		upstream.TransportStateless:  remote.TransportStateless,
		upstream.TransportSSE:        remote.TransportSSE,
	} {
		ssetest.Want(t, "the transport", ours.String(), theirs)
	}
}
