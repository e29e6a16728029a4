package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func addResources(s *mcp.Server) {
	for _, r := range []*mcp.ResourceContents{
		{URI: "test://static-text", MIMEType: "text/plain", Text: "a text"},
		{URI: "test://static-binary", MIMEType: "image/png", Blob: pixel()},
		{URI: "test://watched-resource", MIMEType: "text/plain", Text: "a text that clients may watch"},
	} {
		name := strings.TrimPrefix(r.URI, "test://")
		s.AddResource(&mcp.Resource{URI: r.URI, Name: name, Description: name, MIMEType: r.MIMEType},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{r}}, nil
			})
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template",
		Description: "data of an id", MIMEType: "application/json"}, readTemplate)
}

// readTemplate answers JSON with the id that the URI has in it.
func readTemplate(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
	text, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "application/json",
		Text: string(text)}}}, nil
}

func addPrompts(s *mcp.Server) {
	prompt := func(name string, h func(args map[string]string) *mcp.GetPromptResult, args ...string) {
		p := &mcp.Prompt{Name: name, Description: name}
		for _, arg := range args {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: arg, Description: arg, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return h(req.Params.Arguments), nil
		})
	}
	prompt("test_simple_prompt", func(map[string]string) *mcp.GetPromptResult {
		return messages(&mcp.TextContent{Text: "This is a simple prompt for testing."})
	})
	prompt("test_prompt_with_arguments", func(args map[string]string) *mcp.GetPromptResult {
		return messages(&mcp.TextContent{Text: fmt.Sprintf("arg1=%q, arg2=%q", args["arg1"], args["arg2"])})
	}, "arg1", "arg2")
	prompt("test_prompt_with_embedded_resource", func(args map[string]string) *mcp.GetPromptResult {
		return messages(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
			URI: args["resourceUri"], MIMEType: "text/plain", Text: "an embedded resource"}},
			&mcp.TextContent{Text: "Use this resource."})
	}, "resourceUri")
	prompt("test_prompt_with_image", func(map[string]string) *mcp.GetPromptResult {
		return messages(&mcp.ImageContent{MIMEType: "image/png", Data: pixel()},
			&mcp.TextContent{Text: "Describe this picture."})
	})
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "asks the user"}, askContext)
}

// askContext is a prompt that asks the user.
func askContext(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	if got := accepted(req.Params.InputResponses, "user_context"); got != nil {
		return messages(&mcp.TextContent{Text: fmt.Sprintf("Context: %v", got["context"])}), nil
	}
	return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": question("In which context?",
		"context")}}, nil
}

// messages returns a prompt with one message of the user's for each content.
func messages(contents ...mcp.Content) *mcp.GetPromptResult {
	var all []*mcp.PromptMessage
	for _, content := range contents {
		all = append(all, &mcp.PromptMessage{Role: "user", Content: content})
	}
	return &mcp.GetPromptResult{Messages: all}
}

// complete offers nothing; the suite wants an answer of the right shape.
func complete(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
}
