//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; servers use them as long as they exist.

package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

type who struct {
	Name string `json:"name" jsonschema:"who to greet"`
}

type greeted struct {
	Greeting string `json:"greeting"`
}

// everything returns a server with all that go-sdk's own example servers have, and more:
// it notes in saw what it sees.
func everything(saw *ssetest.Journal, options mcp.ServerOptions) *mcp.Server {
	options.Instructions = "Ask, and you will be <given> & told."
	options.PageSize = 3
	options.InitializedHandler = func(_ context.Context, r *mcp.InitializedRequest) {
		p := r.Session.InitializeParams()
		saw.Add("server: initialized by %s %s, version %s, %s", p.ClientInfo.Name, p.ClientInfo.Version, p.ProtocolVersion, asJSON(p.Capabilities))
	}
	options.RootsListChangedHandler = func(ctx context.Context, r *mcp.RootsListChangedRequest) {
		saw.Add("server: roots have changed")
	}
	options.CompletionHandler = func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Argument.Value + "da"}, Total: 1}}, nil
	}
	options.SubscribeHandler = func(_ context.Context, r *mcp.SubscribeRequest) error {
		saw.Add("server: subscribe %s", r.Params.URI)
		return nil
	}
	options.UnsubscribeHandler = func(_ context.Context, r *mcp.UnsubscribeRequest) error {
		saw.Add("server: unsubscribe %s", r.Params.URI)
		return nil
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "everything", Title: "All", Version: "1.2.3"}, &options)
	addTools(s, saw)
	addTalkative(s, saw)
	s.AddPrompt(&mcp.Prompt{Name: "poem", Arguments: []*mcp.PromptArgument{{Name: "about", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "A poem about " + r.Params.Arguments["about"]}}}}, nil
		})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if r.Params.URI == "note://gone" {
			return nil, mcp.ResourceNotFoundError(r.Params.URI)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "line one\nline two\r\n\u2028<end>"}}}, nil
	}
	s.AddResource(&mcp.Resource{Name: "a", URI: "note://a", MIMEType: "text/plain"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "notes", URITemplate: "note://{name}"}, read)
	return s
}

func addTools(s *mcp.Server, saw *ssetest.Journal) {
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Description: "says <hi>"}, func(ctx context.Context, r *mcp.CallToolRequest, in who) (*mcp.CallToolResult, greeted, error) {
		saw.Add("server: greets %s, path of the GET %v", in.Name, ctx.Value(pathKey{}))
		return nil, greeted{"Hi " + in.Name}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("it did not work")
	})
	raw := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: &jsonschema.Schema{Type: "object"}}, h)
	}
	raw("refuse", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &sdk.Error{Code: -32042, Message: "go <there> first", Data: json.RawMessage(`{"n":9007199254740993}`)}
	})
	raw("break", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("wrapped: %w", &sdk.Error{Code: -32001, Message: "inner"})
	})
	raw("echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: r.Params.Arguments, Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	raw("wait", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		saw.Add("server: waits")
		<-ctx.Done()
		saw.Add("server: was told to stop")
		return nil, ctx.Err()
	})
	raw("grow", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(&mcp.Tool{Name: "grown", InputSchema: &jsonschema.Schema{Type: "object"}}, nil)
		s.AddPrompt(&mcp.Prompt{Name: "grown"}, nil)
		s.AddResource(&mcp.Resource{Name: "grown", URI: "note://grown"}, nil)
		return &mcp.CallToolResult{}, nil
	})
	raw("touch", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, uri := range []string{"note://a", "note://b"} {
			if err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{}, nil
	})
}

// addTalkative adds tools that send to the client, or ask it, while they work.
func addTalkative(s *mcp.Server, saw *ssetest.Journal) {
	add := func(name string, h func(ctx context.Context, r *mcp.CallToolRequest) (any, error)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: &jsonschema.Schema{Type: "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			v, err := h(ctx, r)
			if err != nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: asJSON(v)}}}, nil
		})
	}
	add("work", func(ctx context.Context, r *mcp.CallToolRequest) (any, error) {
		for n := range 5 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n), Total: 5, Message: string(r.Params.Arguments)}); err != nil {
				return nil, err
			}
		}
		return "done", nil
	})
	add("log", func(ctx context.Context, r *mcp.CallToolRequest) (any, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "info", "warning", "error"} {
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "x", Data: map[string]any{"text": "<" + level + ">"}}); err != nil {
				return nil, err
			}
		}
		return "logged", nil
	})
	add("sample", func(ctx context.Context, r *mcp.CallToolRequest) (any, error) {
		return r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 9, SystemPrompt: "be brief",
			Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "why?"}}}})
	})
	add("elicit", func(ctx context.Context, r *mcp.CallToolRequest) (any, error) {
		return r.Session.Elicit(ctx, &mcp.ElicitParams{Message: string(r.Params.Arguments), RequestedSchema: &jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}}})
	})
	add("roots", func(ctx context.Context, r *mcp.CallToolRequest) (any, error) { return r.Session.ListRoots(ctx, nil) })
	add("impatient", func(ctx context.Context, r *mcp.CallToolRequest) (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		sampled := make(chan error, 1)
		go func() {
			_, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, SystemPrompt: "hang", Messages: []*mcp.SamplingMessage{}})
			sampled <- err
		}()
		saw.Await(1, "ada: asked to sample") // a client that has not begun sees no cancellation
		cancel()
		if err := <-sampled; !errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("want that the request is cancelled, got %w", err)
		}
		return "gave up", nil
	})
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
