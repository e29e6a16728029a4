package gosdk

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Recover is a middleware that answers a request whose handler panics, or calls
// runtime.Goexit, with an error of code -32603. go-sdk would let the program end, or keep
// the session for ever. Each handler runs in a goroutine of its own. Add Recover in a call
// of its own, after all other calls of AddReceivingMiddleware: middleware that is added later
// runs around the middleware before, so Recover sees the panics of that too.
//
//	server.AddReceivingMiddleware(gosdk.Recover)
func Recover(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		done := make(chan struct{})
		go func() { // ends with the handler
			defer close(done)
			err = failed("handler ended its goroutine")
			defer func() {
				if p := recover(); p != nil {
					err = failed(fmt.Sprintf("handler panicked: %v", p))
				}
			}()
			result, err = next(ctx, method, req)
		}()
		<-done
		return result, err
	}
}

func failed(why string) error { return &sdk.Error{Code: sdk.CodeInternalError, Message: why} }
