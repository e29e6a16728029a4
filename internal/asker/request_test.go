package asker_test

import (
	"context"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/asker"
)

// A message has one Request, which is gone with the context of before.
func TestRequest(t *testing.T) {
	type key struct{}
	values := context.WithValue(t.Context(), key{}, "kept")
	for name, before := range map[string]context.Context{"without values": nil, "with values": values} {
		ctx, r := asker.WithRequest(before, "Bearer x")
		again, same := asker.WithRequest(ctx, "Bearer y")
		if again != ctx || same != r || asker.RequestFrom(ctx) != r || r.Credentials() != "Bearer x" {
			t.Errorf("%s: got a second Request", name)
		}
		if asker.Before(ctx) != before || asker.Before(before) != before || asker.RequestFrom(before) != nil {
			t.Errorf("%s: the context of before is another one", name)
		}
		r.LeadsTo("github", "search")
		if member, own := r.Destination(); member != "github" || own != "search" {
			t.Errorf("%s: it leads to %q %q", name, member, own)
		}
	}
	var none *asker.Request
	none.LeadsTo("github", "search")
	if member, _ := none.Destination(); member != "" || none.Credentials() != "" {
		t.Errorf("nothing leads to %q", member)
	}
}
