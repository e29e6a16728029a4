package asker_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/asker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFromContext(t *testing.T) {
	if a := asker.FromContext(t.Context()); a != nil {
		t.Errorf("without an Asker: got %+v", a)
	}
	first := asker.NewContext(t.Context(), &asker.Asker{Principal: "first"})
	ctx, cancel := context.WithCancel(asker.NewContext(first, &asker.Asker{Principal: "second"}))
	defer cancel()
	if a := asker.FromContext(ctx); a == nil || a.Principal != "second" {
		t.Errorf("got %+v, want the one that was added last", a)
	}
}
