package mcpgo

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/peer"
)

// headerKey returns the key under which mcp-go looks for the header of the HTTP request
// in the context, to make it the Header of its requests. mcp-go does not export the key,
// so headerKey watches for which keys mcp-go asks, and which of them has that effect. It
// returns nil if none has.
var headerKey = sync.OnceValue(func() any {
	asked := &recorder{Context: context.Background()}
	headerSeen(asked)
	for _, key := range asked.keys {
		if headerSeen(context.WithValue(context.Background(), key, http.Header{"Probe": {"yes"}})).Get("Probe") != "" {
			return key
		}
	}
	return nil
})

// headerSeen returns the Header that a request has which mcp-go handles with ctx.
func headerSeen(ctx context.Context) (header http.Header) {
	hooks := &server.Hooks{}
	hooks.AddBeforePing(func(_ context.Context, _ any, r *mcp.PingRequest) { header = r.Header })
	server.NewMCPServer("probe", "0", server.WithHooks(hooks)).
		HandleMessage(ctx, json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	return header
}

// recorder is a context that notes the keys it is asked for.
type recorder struct {
	context.Context
	keys []any
}

// Value notes key.
func (r *recorder) Value(key any) any {
	if reflect.TypeOf(key).Comparable() {
		r.keys = append(r.keys, key)
	}
	return nil
}

// withHeader returns values with the header of their peer under headerKey, unless they
// have none or there is a header already. values may be nil.
func withHeader(values context.Context) context.Context {
	if values == nil {
		return nil
	}
	key := headerKey()
	p, ok := peer.FromContext(values)
	if !ok || p.Header == nil || key == nil || values.Value(key) != nil {
		return values
	}
	return context.WithValue(values, key, p.Header)
}
