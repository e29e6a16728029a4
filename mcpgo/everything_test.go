//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; clients and servers use them as long as they exist.

package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// everything is a server with all features of mcp-go that a client of HTTP+SSE can meet,
// and what it has seen.
type everything struct {
	*server.MCPServer
	saw     *ssetest.Journal
	release chan struct{} // closed: tools that wait for it go on
}

type tenantKey struct{}

// tenantOf puts a header of the request into the context.
func tenantOf(ctx context.Context, r *http.Request) context.Context {
	return context.WithValue(ctx, tenantKey{}, r.Header.Get("X-Tenant"))
}

func newEverything(t testing.TB) *everything {
	e := &everything{saw: ssetest.NewJournal(t), release: make(chan struct{})}
	e.MCPServer = server.NewMCPServer("everything", "1.2.3",
		server.WithInstructions("ask me anything"),
		server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true),
		server.WithLogging(), server.WithRoots(), server.WithElicitation(),
		server.WithHooks(e.hooks()),
		server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				e.saw.Add("middleware: %s", r.Params.Name)
				return next(ctx, r)
			}
		}))
	e.EnableSampling()
	e.addTools()
	e.addRest()
	return e
}

func (e *everything) hooks() *server.Hooks {
	h := &server.Hooks{}
	h.AddOnRegisterSession(func(_ context.Context, s server.ClientSession) { e.saw.Add("registered: %t", s.SessionID() != "") })
	h.AddOnUnregisterSession(func(context.Context, server.ClientSession) { e.saw.Add("unregistered") })
	h.AddBeforeAny(func(_ context.Context, _ any, method mcp.MCPMethod, _ any) { e.saw.Add("before %s", method) })
	h.AddOnSuccess(func(_ context.Context, _ any, method mcp.MCPMethod, _, _ any) { e.saw.Add("success %s", method) })
	h.AddOnError(func(_ context.Context, _ any, method mcp.MCPMethod, _ any, err error) {
		e.saw.Add("error %s: %v", method, err)
	})
	h.AddOnRequestInitialization(func(ctx context.Context, _ any, _ any) error {
		e.saw.Add("request of a session: %t", server.ClientSessionFromContext(ctx) != nil)
		return nil
	})
	h.AddAfterInitialize(func(ctx context.Context, _ any, r *mcp.InitializeRequest, _ *mcp.InitializeResult) {
		s := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
		capabilities, err := json.Marshal(s.GetClientCapabilities())
		e.saw.Add("client %s %s, capabilities %s %v, version %s, tenant %v", s.GetClientInfo().Name, s.GetClientInfo().Version,
			capabilities, err, r.Params.ProtocolVersion, ctx.Value(tenantKey{}))
	})
	return h
}

func (e *everything) tool(name string, f func(ctx context.Context, r mcp.CallToolRequest) (string, error)) {
	e.AddTool(mcp.NewTool(name, mcp.WithString("text")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := f(ctx, r)
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(text), nil
	})
}

func (e *everything) addTools() {
	e.tool("echo", func(_ context.Context, r mcp.CallToolRequest) (string, error) { return r.GetString("text", ""), nil })
	e.tool("fail", func(context.Context, mcp.CallToolRequest) (string, error) { return "", errors.New("broken") })
	e.tool("panic", func(context.Context, mcp.CallToolRequest) (string, error) { panic("boom") })
	e.tool("progress", func(ctx context.Context, r mcp.CallToolRequest) (string, error) {
		for i := range 3 {
			params := map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": i, "total": 3}
			if err := e.SendNotificationToClient(ctx, "notifications/progress", params); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	e.tool("log", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		for _, level := range []mcp.LoggingLevel{mcp.LoggingLevelDebug, mcp.LoggingLevelInfo, mcp.LoggingLevelError} {
			if err := e.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "test", "at "+string(level))); err != nil {
				return "", err
			}
		}
		return "logged", nil
	})
	e.tool("wait", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		e.saw.Add("waits")
		select {
		case <-ctx.Done():
			e.saw.Add("wait ends: %v", ctx.Err())
			return "", ctx.Err()
		case <-e.release:
			return "released", nil
		}
	})
	e.tool("who", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		passed := ""
		if p, ok := caller.FromContext(ctx); ok {
			passed = p.Header.Get("X-Tenant")
		}
		return fmt.Sprintf("tenant %v, passed %q", ctx.Value(tenantKey{}), passed), nil
	})
	e.addChanges()
	e.addAsks()
}

// addChanges adds tools that change the server.
func (e *everything) addChanges() {
	e.tool("addtool", func(context.Context, mcp.CallToolRequest) (string, error) {
		e.tool("added", func(context.Context, mcp.CallToolRequest) (string, error) { return "new", nil })
		return "added", nil
	})
	e.tool("addsessiontool", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		id := server.ClientSessionFromContext(ctx).SessionID()
		return "added", e.AddSessionTool(id, mcp.NewTool("mine"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("only mine"), nil
		})
	})
	e.tool("addsessionresources", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		id := server.ClientSessionFromContext(ctx).SessionID()
		err := errors.Join(
			e.AddSessionResource(id, mcp.NewResource("test://mine", "mine"), contents),
			e.AddSessionResourceTemplate(id, mcp.NewResourceTemplate("mine://{x}", "mine"), contents))
		return "added", err
	})
	e.tool("update", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		s := server.ClientSessionFromContext(ctx)
		if subscribed, ok := s.(server.SessionWithResourceSubscriptions); ok {
			e.saw.Add("subscribed to %v, a: %t", subscribed.SubscribedResources(), subscribed.IsSubscribedToResource("test://a"))
		}
		return "updated", e.SendNotificationToSpecificClient(s.SessionID(), "notifications/resources/updated", map[string]any{"uri": "test://a"})
	})
}

// addAsks adds tools that ask the client.
func (e *everything) addAsks() {
	e.tool("sample", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		var r mcp.CreateMessageRequest
		r.MaxTokens, r.Messages = 10, []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("2+2?")}}
		result, err := e.RequestSampling(ctx, r)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s says %v", result.Model, result.Content), nil
	})
	e.tool("elicit", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		result, err := e.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
			Message: "name?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
		}})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %v", result.Action, result.Content), nil
	})
	e.tool("roots", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		result, err := e.RequestRoots(ctx, mcp.ListRootsRequest{})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%v", result.Roots), nil
	})
	e.tool("impatient", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			<-e.release
			cancel()
		}()
		_, err := e.RequestRoots(ctx, mcp.ListRootsRequest{})
		return fmt.Sprint(err), nil
	})
}

func contents(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: "contents"}}, nil
}

// addRest adds what is no tool.
func (e *everything) addRest() {
	e.AddResource(mcp.NewResource("test://a", "a"), contents)
	e.AddResourceTemplate(mcp.NewResourceTemplate("test://b/{id}", "b"), contents)
	for _, method := range []string{"notifications/initialized", "notifications/roots/list_changed", "notifications/custom"} {
		e.AddNotificationHandler(method, func(ctx context.Context, n mcp.JSONRPCNotification) {
			e.saw.Add("notified: %s %v of a session: %t, tenant %v", n.Method, n.Params.AdditionalFields,
				server.ClientSessionFromContext(ctx) != nil, ctx.Value(tenantKey{}))
		})
	}
}
