package compose_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	mcpgosdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/mcpgo"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// ofGoSDK returns a server of go-sdk, with one tool.
func ofGoSDK() upstream.Upstream {
	srv := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "by go-sdk"}}}, nil, nil
	})
	return gosdk.Server(srv)
}

// ofMCPGo returns a server of mcp-go, with one tool.
func ofMCPGo() upstream.Upstream {
	srv := sdkserver.NewMCPServer("mcpgo", "1")
	srv.AddTool(mcpgosdk.NewTool("t"), func(context.Context, mcpgosdk.CallToolRequest) (*mcpgosdk.CallToolResult, error) {
		return mcpgosdk.NewToolResultText("by mcp-go"), nil
	})
	return mcpgo.Server(srv)
}

// ofFunction returns a server that is a function, with one tool.
func ofFunction() upstream.Upstream {
	results := map[string]string{
		"initialize": newFake().says, "tools/list": listOf("tools", "name", "t"),
		"tools/call": `{"content":[{"type":"text","text":"by a function"}]}`,
	}
	return upstream.Handle(func(_ context.Context, msg json.RawMessage) any {
		m, err := jsonrpc.Parse(msg)
		if err != nil || m.Kind != jsonrpc.Request {
			return err
		}
		return jsonrpc.NewResult(m.ID, json.RawMessage(results[m.Method]))
	})
}

// Each upstream can be a member itself, without a gateway: also one whose sessions take requests by SendRequest alone,
// and another view.
func TestMembersWithoutGateway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		inner, err := compose.New(members("a", ofGoSDK(), "b", ofMCPGo()), compose.Options{Name: "inner"})
		ssetest.Must(t, err)
		c := open(t, newView(t, members("gosdk", ofGoSDK(), "mcpgo", ofMCPGo(), "function", ofFunction(), "view", inner)))
		c.request(2, "tools/list", "{}")
		synctest.Wait()
		listed := strings.Join(c.take(), "\n")
		for i, tool := range []struct{ name, text string }{
			{"gosdk__t", "by go-sdk"}, {"mcpgo__t", "by mcp-go"}, {"function__t", "by a function"},
			{"view__a__t", "by go-sdk"}, {"view__b__t", "by mcp-go"},
		} {
			ssetest.WantText(t, "list", listed, fmt.Sprintf(`"name":%q`, tool.name))
			c.request(int64(3+i), "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, tool.name))
			synctest.Wait()
			ssetest.WantText(t, "call of "+tool.name, strings.Join(c.take(), "\n"), fmt.Sprintf(`"id":%d`, 3+i), tool.text)
		}
	})
}
