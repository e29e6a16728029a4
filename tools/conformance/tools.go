//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; the suite tests them as long as they exist.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// none is the input of a tool that takes no arguments; any are ignored.
type none = any

// handler is a tool's function, without the structured output that no tool here has.
type handler[In any] func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, error)

func add[In any](s *mcp.Server, t *mcp.Tool, h handler[In]) {
	if t.Description == "" {
		t.Description = "for a scenario of the conformance suite"
	}
	mcp.AddTool(s, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		result, err := h(ctx, req, in)
		return result, nil, err
	})
}

// addTools adds the tools that need nothing of the client.
func addTools(s *mcp.Server) {
	for name, content := range contents() {
		add(s, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: content}, nil
		})
	}
	add(s, &mcp.Tool{Name: "test_error_handling"},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
			return nil, errors.New("this tool always fails")
		})
	add(s, &mcp.Tool{Name: "test_tool_with_logging"}, logThrice)
	add(s, &mcp.Tool{Name: "test_logging_tool"}, logOnce)
	add(s, &mcp.Tool{Name: "test_tool_with_progress"}, progress)
	add(s, &mcp.Tool{Name: "test_missing_capability"}, needSampling)
	add(s, &mcp.Tool{Name: "json_schema_2020_12_tool", InputSchema: json.RawMessage(contactSchema)}, echo)
	add(s, &mcp.Tool{Name: "test_x_mcp_header", InputSchema: json.RawMessage(headerSchema)}, echo)
}

// contents returns what the tools answer that always answer the same.
func contents() map[string][]mcp.Content {
	text := func(s string) mcp.Content { return &mcp.TextContent{Text: s} }
	picture := &mcp.ImageContent{MIMEType: "image/png", Data: pixel()}
	embedded := func(uri string) mcp.Content {
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain",
			Text: "an embedded resource"}}
	}
	return map[string][]mcp.Content{
		"test_simple_text":       {text("This is a simple text response for testing.")},
		"test_image_content":     {picture},
		"test_audio_content":     {&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte(silence)}},
		"test_embedded_resource": {embedded("test://embedded-resource")},
		"test_multiple_content_types": {text("several types of content:"), picture,
			embedded("test://mixed-content-resource")},
		"test_streaming_elicitation": {text("nothing was asked: no client here has declared that it answers")},
	}
}

// pixel returns a picture of one pixel.
func pixel() []byte {
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err) // a Buffer takes all
	}
	return buf.Bytes()
}

// silence is a WAV file with one sample: mono, 16 bits, 8 kHz.
const silence = "RIFF\x26\x00\x00\x00WAVEfmt " +
	"\x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00"

// The scenario json-schema-2020-12 looks for these keywords in the list of tools.
const contactSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "phone": {"type": "string"}, "email": {"type": "string"},
		"address": {"$ref": "#/$defs/address"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"required": ["phone"]}, "then": {"required": ["name"]}, "else": {"required": ["email"]},
	"additionalProperties": false
}`

// The client of 2026-07-28 must send region in the header Mcp-Param-Region too.
const headerSchema = `{
	"type": "object",
	"properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "level": {"type": "integer"}}
}`

// pause is between two notifications of a tool, so that they do not come in one read.
const pause = 50 * time.Millisecond

func logThrice(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	for i := range 3 {
		if i > 0 {
			time.Sleep(pause)
		}
		if err := req.Session.Log(ctx,
			&mcp.LoggingMessageParams{Level: "info", Data: fmt.Sprintf("message %d of 3", i+1)}); err != nil {
			return nil, err
		}
	}
	return answer("logged"), nil
}

// logOnce logs something that a client of 2026-07-28 must not get: it asked for no log.
func logOnce(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	return answer("logged"), req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "a message"})
}

func progress(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return answer("without a progress token"), nil
	}
	for _, done := range []float64{0, 50, 100} {
		if err := req.Session.NotifyProgress(ctx,
			&mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
			return nil, err
		}
		time.Sleep(pause)
	}
	return answer(fmt.Sprint(token)), nil
}

// needSampling fails unless the client has declared sampling.
func needSampling(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
		return answer("the client declared sampling"), nil
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities,
		Message: "the client did not declare sampling", Data: data}
}

// echo answers its arguments.
func echo(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	return answer(string(req.Params.Arguments)), nil
}

func answer(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// addTriggers adds the tools that change a list while a client listens. The list is another one after each call: a
// gateway that compares lists tells nobody of one that is the same.
func addTriggers(s *mcp.Server) {
	var changes atomic.Int64
	later := func() string { return fmt.Sprintf("came with change %d", changes.Add(1)) }
	add(s, &mcp.Tool{Name: "test_trigger_tool_change"},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
			add(s, &mcp.Tool{Name: "grown", Description: later()},
				func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
					return answer("grown"), nil
				})
			return answer("the list of tools has changed"), nil
		})
	add(s, &mcp.Tool{Name: "test_trigger_prompt_change"},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
			s.AddPrompt(&mcp.Prompt{Name: "grown", Description: later()},
				func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
					return messages(&mcp.TextContent{Text: "grown"}), nil
				})
			return answer("the list of prompts has changed"), nil
		})
}
