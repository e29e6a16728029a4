package caller_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/caller"
)

type userKey struct{}

func request(t *testing.T) (context.Context, context.CancelFunc) {
	ctx := context.WithValue(t.Context(), userKey{}, "ada")
	ctx, cancel := context.WithCancel(ctx)
	return caller.NewContext(ctx, &caller.Caller{Principal: "p", Addr: netip.MustParseAddr("192.0.2.1")}), cancel
}

func TestFromContext(t *testing.T) {
	ctx, cancel := request(t)
	defer cancel()
	p, ok := caller.FromContext(ctx)
	if !ok || p.Principal != "p" || p.Addr.String() != "192.0.2.1" {
		t.Errorf("got %+v, %v", p, ok)
	}
	if p, ok := caller.FromContext(t.Context()); ok || p != nil {
		t.Errorf("without a peer: got %+v, %v", p, ok)
	}
}

func TestValuesOutliveTheContext(t *testing.T) {
	ctx, cancel := request(t)
	timed, stop := context.WithTimeout(context.WithValue(ctx, key("later"), 1), time.Hour)
	values := caller.Values(timed)
	stop()
	cancel()
	if p, ok := caller.FromContext(values); !ok || p.Principal != "p" {
		t.Errorf("got %+v, %v, want the peer", p, ok)
	}
	if values.Value(userKey{}) != "ada" || values.Value(key("later")) != nil {
		t.Error("want the values of the request, and not those added after the peer")
	}
	if _, limited := values.Deadline(); limited || values.Err() != nil {
		t.Errorf("got a deadline or %v, want a context that does not end", values.Err())
	}
	if caller.Values(t.Context()) != context.Background() {
		t.Error("without a peer: want context.Background()")
	}
}

type key string

func TestJoin(t *testing.T) {
	session, end := context.WithCancel(context.WithValue(context.WithValue(t.Context(), key("a"), 1), key("b"), 1))
	message, cancel := context.WithCancel(context.WithValue(t.Context(), key("b"), 2))
	ctx := caller.Join(session, context.WithoutCancel(message))
	if ctx.Value(key("a")) != 1 || ctx.Value(key("b")) != 2 || ctx.Value(key("c")) != nil {
		t.Errorf("got %v, %v, %v, want 1 of the session, 2 of the message, nil", ctx.Value(key("a")), ctx.Value(key("b")), ctx.Value(key("c")))
	}
	child, stop := context.WithCancel(ctx)
	defer stop()
	cancel()
	if child.Err() != nil {
		t.Error("ended with the message")
	}
	end()
	<-child.Done()
	if caller.Join(session, nil) != session {
		t.Error("without values: want the context itself")
	}
}
