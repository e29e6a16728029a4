package plainjson_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/plainjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestEncode(t *testing.T) {
	got, err := plainjson.Encode(map[string]any{"a": "<b> & \n"})
	ssetest.Want(t, "JSON", string(got), `{"a":"<b> & \n"}`)
	ssetest.Must(t, err)
	if got, err = plainjson.Encode(func() {}); got != nil || err == nil {
		t.Errorf("a function: got %q, %v", got, err)
	}
}
