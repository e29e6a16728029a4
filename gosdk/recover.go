package gosdk

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Recover is a middleware that answers a request whose handler panics with an error of
// code -32603, where go-sdk would let the program end. Add it last, so that it sees the
// panics of other middleware:
//
//	server.AddReceivingMiddleware(gosdk.Recover)
func Recover(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				result, err = nil, &sdk.Error{Code: sdk.CodeInternalError, Message: fmt.Sprintf("handler panicked: %v", p)}
			}
		}()
		return next(ctx, method, req)
	}
}
