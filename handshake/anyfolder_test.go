package handshake

import (
	"context"
	"log/slog"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Servers start in empty folders one at a time.
func TestOneServerAtATimeIsInAnEmptyFolder(t *testing.T) {
	anyFolderTurn <- struct{}{} // another one is
	defer func() { <-anyFolderTurn }()
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	asked := false
	memory := remember.Open(t.TempDir(), log).Server(remember.Identity{Server: "s", AnyFolder: "any"}).InAnyFolder()
	s := NewSupplier(nil, SupplierOptions{Params: Synthetic(ClientInfo{}), Session: multiplex.Options{Logger: log}, AnyFolder: &AnyFolder{
		Memory: memory, In: func(string) upstream.Upstream { asked = true; return nil },
	}})
	cancel()
	s.LearnInAnyFolder(ctx)
	s.Close()
	s.Wait()
	ssetest.Want(t, "it was started", asked, false)
}
