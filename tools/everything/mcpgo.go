package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpgo "github.com/mark3labs/mcp-go/server"

	adapter "github.com/mcp-sse/mcp-sse/mcpgo"
)

// mcpGo is the server of mark3labs/mcp-go.
type mcpGo struct {
	server *mcpgo.MCPServer
	grown  atomic.Int64
}

func newMCPGo() *mcpGo {
	s := &mcpGo{server: mcpgo.NewMCPServer("everything-mcp-go", "1",
		mcpgo.WithToolCapabilities(true), mcpgo.WithResourceCapabilities(true,
			true), mcpgo.WithPromptCapabilities(true),
		mcpgo.WithLogging(), mcpgo.WithElicitation(), mcpgo.WithRoots())}
	s.server.EnableSampling()
	for _, t := range s.tools() {
		s.server.AddTool(t.Tool, t.Handler)
	}
	s.server.AddResource(mcp.NewResource(greetingURI, "greeting", mcp.WithMIMEType("text/plain")),
		func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: greetingURI, MIMEType: "text/plain",
				Text: "hello"}}, nil
		})
	s.server.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("name", mcp.RequiredArgument())),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := mcp.NewTextContent("Greet " + req.Params.Arguments["name"])
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, text)}), nil
		})
	return s
}

func (s *mcpGo) tools() []mcpgo.ServerTool {
	all := []mcpgo.ServerTool{
		textTool("echo", func(_ context.Context, req mcp.CallToolRequest) (string, error) {
			return req.GetString("message", ""), nil
		},
			mcp.WithString("message"), mcp.WithReadOnlyHintAnnotation(true)),
		textTool("add", func(_ context.Context, req mcp.CallToolRequest) (string, error) {
			return fmt.Sprint(req.GetFloat("a", 0) + req.GetFloat("b", 0)), nil
		}, mcp.WithNumber("a"), mcp.WithNumber("b"), mcp.WithReadOnlyHintAnnotation(true)),
		textTool("progress", s.progress, mcp.WithNumber("steps")),
		textTool("slow", s.slow, mcp.WithNumber("ms")),
		textTool("log", s.log, mcp.WithString("level"), mcp.WithString("message")),
		textTool("touch", s.touch, mcp.WithString("uri")),
		textTool("grow", s.grow),
		textTool("crash", func(context.Context, mcp.CallToolRequest) (string, error) { os.Exit(3); return "", nil }),
	}
	for name, q := range mcpGoQuestions() {
		all = append(all, mcpgo.ServerTool{Tool: mcp.NewTool(name), Handler: q})
	}
	return all
}

func textTool(name string, f func(context.Context, mcp.CallToolRequest) (string, error),
	options ...mcp.ToolOption) mcpgo.ServerTool {
	return mcpgo.ServerTool{Tool: mcp.NewTool(name, options...),
		Handler: func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := f(ctx, req)
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(text), nil
		}}
}

func (s *mcpGo) progress(ctx context.Context, req mcp.CallToolRequest) (string, error) {
	steps := req.GetInt("steps", 0)
	for i := range steps {
		if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
			break
		}
		err := s.server.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
			"progressToken": req.Params.Meta.ProgressToken, "progress": i + 1, "total": steps})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d steps", steps), nil
}

func (s *mcpGo) slow(ctx context.Context, req mcp.CallToolRequest) (string, error) {
	select {
	case <-time.After(time.Duration(req.GetInt("ms", 0)) * time.Millisecond):
		return "slow", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (s *mcpGo) log(ctx context.Context, req mcp.CallToolRequest) (string, error) {
	level := mcp.LoggingLevel(req.GetString("level", ""))
	return "logged", s.server.SendLogMessageToClient(ctx,
		mcp.NewLoggingMessageNotification(level, "everything", req.GetString("message", "")))
}

func (s *mcpGo) touch(_ context.Context, req mcp.CallToolRequest) (string, error) {
	s.server.SendNotificationToAllClients("notifications/resources/updated",
		map[string]any{"uri": req.GetString("uri", "")})
	return "touched", nil
}

func (s *mcpGo) grow(context.Context, mcp.CallToolRequest) (string, error) {
	name := fmt.Sprintf("grown-%d", s.grown.Add(1))
	t := textTool(name, func(context.Context, mcp.CallToolRequest) (string, error) { return name, nil })
	s.server.AddTool(t.Tool, t.Handler)
	return name, nil
}

// mcpGoQuestions returns one tool for each thing that a server may ask.
func mcpGoQuestions() map[string]mcpgo.ToolHandlerFunc {
	const key = "answer"
	ask := func() *mcpgo.InputRequestBuilder { return mcpgo.NewInputRequestBuilder("asked") }
	who := mcp.SamplingMessage{Role: mcp.RoleUser, Content: mcp.NewTextContent("who are you?")}
	return map[string]mcpgo.ToolHandlerFunc{
		"sampling": func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			got := mcpgo.SamplingResponse(req.Params.InputResponses, key)
			if got == nil {
				return ask().Sample(key, mcp.CreateMessageParams{MaxTokens: 10,
					Messages: []mcp.SamplingMessage{who}}).ToolResult(), nil
			}
			return mcp.NewToolResultText(mcp.GetTextFromContent(got.Content)), nil
		},
		"elicitation": func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			got := mcpgo.ElicitationResponse(req.Params.InputResponses, key)
			if got == nil {
				return ask().Elicit(key, mcp.ElicitationParams{Message: "who are you?",
					RequestedSchema: nameSchema}).ToolResult(), nil
			}
			content, _ := got.Content.(map[string]any)
			return mcp.NewToolResultText(fmt.Sprint(content["name"])), nil
		},
		"roots": func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			got := mcpgo.RootsResponse(req.Params.InputResponses, key)
			if got == nil {
				return ask().Roots(key).ToolResult(), nil
			}
			var uris []string
			for _, root := range got.Roots {
				uris = append(uris, root.URI)
			}
			return mcp.NewToolResultText(strings.Join(uris, " ")), nil
		},
	}
}

func (s *mcpGo) stdio() error { return mcpgo.ServeStdio(s.server) }

func (s *mcpGo) streamable(stateless bool) http.Handler {
	return mcpgo.NewStreamableHTTPServer(s.server, mcpgo.WithStateful(!stateless))
}

func (s *mcpGo) sse() http.Handler { return mcpgo.NewSSEServer(s.server) }

func (s *mcpGo) adapter() http.Handler { return adapter.NewSSEServer(s.server) }
