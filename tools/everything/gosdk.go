//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; clients and servers use them as long as they exist.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gosdk"
)

// goSDK is the server of modelcontextprotocol/go-sdk. One mcp.Server serves all
// sessions, so grow and touch are seen by each of them.
type goSDK struct {
	server *mcp.Server
	grown  atomic.Int64
}

type (
	none struct{}
	said struct {
		Message string `json:"message"`
	}
	sum struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}
	stepping struct {
		Steps int `json:"steps"`
	}
	waiting struct {
		MS int `json:"ms"`
	}
	logging struct {
		Level   string `json:"level"`
		Message string `json:"message"`
	}
	touching struct {
		URI string `json:"uri"`
	}
)

func newGoSDK() *goSDK {
	accept := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	release := func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	s := &goSDK{server: mcp.NewServer(&mcp.Implementation{Name: "everything-go-sdk", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler: accept, UnsubscribeHandler: release,
		Capabilities: &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
	})}
	s.addTools()
	s.server.AddResource(&mcp.Resource{Name: "greeting", URI: greetingURI, MIMEType: "text/plain"}, readGreeting)
	s.server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		greet)
	return s
}

// greetingURI is the resource of all our servers.
const greetingURI = "test://greeting"

func (s *goSDK) addTools() {
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s.server, &mcp.Tool{Name: "echo", Annotations: readOnly}, tool(
		func(_ context.Context, _ *mcp.CallToolRequest, in said) (string, error) { return in.Message, nil }))
	mcp.AddTool(s.server, &mcp.Tool{Name: "add", Annotations: readOnly}, tool(
		func(_ context.Context, _ *mcp.CallToolRequest, in sum) (string, error) {
			return fmt.Sprint(in.A + in.B), nil
		}))
	mcp.AddTool(s.server, &mcp.Tool{Name: "progress"}, tool(progress))
	mcp.AddTool(s.server, &mcp.Tool{Name: "slow"}, tool(slow))
	mcp.AddTool(s.server, &mcp.Tool{Name: "log"}, tool(logLine))
	mcp.AddTool(s.server, &mcp.Tool{Name: "touch"}, tool(s.touch))
	mcp.AddTool(s.server, &mcp.Tool{Name: "grow"}, tool(s.grow))
	mcp.AddTool(s.server, &mcp.Tool{Name: "crash"}, tool(
		func(context.Context, *mcp.CallToolRequest, none) (string, error) { os.Exit(3); return "", nil }))
	for name, question := range questions() {
		mcp.AddTool(s.server, &mcp.Tool{Name: name}, ask(question))
	}
}

// tool turns a function that answers a text into a handler.
func tool[In any](f func(context.Context, *mcp.CallToolRequest, In) (string, error)) mcp.ToolHandlerFor[In, any] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		text, err := f(ctx, req, in)
		if err != nil {
			return nil, nil, err
		}
		return textResult(text), nil, nil
	}
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func progress(ctx context.Context, req *mcp.CallToolRequest, in stepping) (string, error) {
	token := req.Params.GetProgressToken()
	for i := range in.Steps {
		if token == nil {
			break
		}
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(i + 1), Total: float64(in.Steps)})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d steps", in.Steps), nil
}

func slow(ctx context.Context, _ *mcp.CallToolRequest, in waiting) (string, error) {
	select {
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
		return "slow", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func logLine(ctx context.Context, req *mcp.CallToolRequest, in logging) (string, error) {
	err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(in.Level), Logger: "everything",
		Data: in.Message})
	return "logged", err
}

func (s *goSDK) touch(ctx context.Context, _ *mcp.CallToolRequest, in touching) (string, error) {
	return "touched", s.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.URI})
}

func (s *goSDK) grow(context.Context, *mcp.CallToolRequest, none) (string, error) {
	name := fmt.Sprintf("grown-%d", s.grown.Add(1))
	mcp.AddTool(s.server, &mcp.Tool{Name: name}, tool(
		func(context.Context, *mcp.CallToolRequest, none) (string, error) { return name, nil }))
	return name, nil
}

// question is what a tool asks of the client, and how it reads the answer.
type question struct {
	request mcp.InputRequest
	answer  func(mcp.InputResponse) (string, error)
}

// questions returns one question for each thing that a server may ask.
func questions() map[string]question {
	return map[string]question{
		"sampling": {&mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "who are you?"}}}}, sampled},
		"elicitation": {&mcp.ElicitParams{Message: "who are you?", RequestedSchema: nameSchema}, elicited},
		"roots":       {&mcp.ListRootsParams{}, rooted},
	}
}

// nameSchema is the form of the elicitation.
var nameSchema = map[string]any{"type": "object", "required": []string{"name"},
	"properties": map[string]any{"name": map[string]any{"type": "string"}}}

var errNoAnswer = errors.New("the client's answer is not of the kind that was asked for")

func sampled(r mcp.InputResponse) (string, error) {
	got, ok := r.(*mcp.CreateMessageWithToolsResult)
	if !ok || len(got.Content) != 1 {
		return "", errNoAnswer
	}
	text, ok := got.Content[0].(*mcp.TextContent)
	if !ok {
		return "", errNoAnswer
	}
	return text.Text, nil
}

func elicited(r mcp.InputResponse) (string, error) {
	got, ok := r.(*mcp.ElicitResult)
	if !ok {
		return "", errNoAnswer
	}
	if got.Action != "accept" {
		return got.Action, nil
	}
	return fmt.Sprint(got.Content["name"]), nil
}

func rooted(r mcp.InputResponse) (string, error) {
	got, ok := r.(*mcp.ListRootsResult)
	if !ok {
		return "", errNoAnswer
	}
	var uris []string
	for _, root := range got.Roots {
		uris = append(uris, root.URI)
	}
	return strings.Join(uris, " "), nil
}

// ask returns a tool that answers what the client answers. The SDK sends the
// question as a request of its own, or as input_required to a stateless client.
func ask(q question) mcp.ToolHandlerFor[none, any] {
	const key = "answer"
	return func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		got, ok := req.Params.InputResponses[key]
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{key: q.request}, RequestState: "asked"},
				nil, nil
		}
		text, err := q.answer(got)
		if err != nil {
			return nil, nil, err
		}
		return textResult(text), nil, nil
	}
}

func readGreeting(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: greetingURI, MIMEType: "text/plain",
		Text: "hello"}}}, nil
}

func greet(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text := "Greet " + req.Params.Arguments["name"]
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user",
		Content: &mcp.TextContent{Text: text}}}}, nil
}

func (s *goSDK) stdio() error { return s.server.Run(context.Background(), &mcp.StdioTransport{}) }

func (s *goSDK) streamable(stateless bool) http.Handler {
	return mcp.NewStreamableHTTPHandler(s.get,
		&mcp.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true})
}

func (s *goSDK) sse() http.Handler { return mcp.NewSSEHandler(s.get, nil) }

func (s *goSDK) adapter() http.Handler { return gosdk.NewSSEHandler(s.get, nil) }

func (s *goSDK) get(*http.Request) *mcp.Server { return s.server }
