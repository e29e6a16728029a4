package api_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

func TestModelWarning(t *testing.T) {
	for _, tc := range []struct {
		used, wanted string
		warns        bool
	}{
		{"potion-base-8M-0123abcd", "potion-base-8M", false},
		{"potion-base-8M-0123abcd", "potion-base-8M-0123abcd", false},
		{"text-embedding-3-small", "text-embedding-3-small", false},
		{"text-embedding-3-small", "text-embedding-3", true},
		{"potion-base-8M-0123abcd", "potion-base", true},
		{"m", "", false},
	} {
		info := api.ServerInfo{Embeddings: &api.Embeddings{Model: tc.used}}
		if got := info.ModelWarning(tc.wanted); (got != "") != tc.warns {
			t.Errorf("%s is used, %q is wanted: got %q", tc.used, tc.wanted, got)
		}
	}
}
