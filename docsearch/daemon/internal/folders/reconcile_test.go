package folders

import (
	"context"
	"errors"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
)

// A daemon that ends between two batches reads no more of the files.
func TestApplyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &folder{ctx: ctx}
	if err := f.apply(nil, []crawl.File{{Path: "left.txt"}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
