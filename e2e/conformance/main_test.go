package main

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A client that knows all versions must fall back to initialize with the legacy server,
// and only with it.
func TestLegacyServerSpeaksSessionsOnly(t *testing.T) {
	for name, test := range map[string]struct {
		legacy bool
		want   string
	}{
		"Modern": {false, "2026-07-28"},
		"Legacy": {true, "2025-11-25"},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := mcp.NewInMemoryTransports()
			served := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go func() { served <- newServer(test.legacy).Run(ctx, ours) }()
			defer func() { stop(); <-served }()
			session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil).Connect(ctx, theirs, nil)
			if err != nil {
				t.Fatalf("connect: %v", err)
			}
			defer session.Close()
			if got := session.InitializeResult().ProtocolVersion; got != test.want {
				t.Errorf("protocol version = %s, want %s", got, test.want)
			}
		})
	}
}
