package compose_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A view is ready as soon as one of its members is, also beside one that hangs.
func TestReady(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		hangs := probed{newFake(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		dead := probed{newFake(), func(context.Context) error { return errors.New("it is dead") }}
		well := probed{newFake(), func(context.Context) error { return nil }}
		begin := time.Now()
		ssetest.Must(t, newView(t, members("hangs", hangs, "dead", dead, "well", well)).Ready(t.Context()))
		ssetest.Must(t, newView(t, members("hangs", hangs, "f", newFake())).Ready(t.Context()))
		ssetest.Want(t, "the wait", time.Since(begin), time.Duration(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := newView(t, members("hangs", hangs, "dead", dead)).Ready(ctx)
		ssetest.WantText(t, "none", err.Error(), "dead: it is dead", "hangs: context deadline exceeded")
	})
}

// probed is a member whose readiness is known.
type probed struct {
	*fake
	ready func(ctx context.Context) error
}

func (p probed) Ready(ctx context.Context) error { return p.ready(ctx) }
