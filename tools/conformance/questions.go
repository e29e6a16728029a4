//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; the suite tests them as long as they exist.

package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addQuestions adds the tools that ask the client. Each returns its questions until it
// has the answers: go-sdk sends them as requests of the server to the client of a
// session, and as input_required to one of 2026-07-28.
func addQuestions(s *mcp.Server) {
	add(s, &mcp.Tool{Name: "test_sampling"}, sample)
	add(s, &mcp.Tool{Name: "test_elicitation"}, elicit)
	for name, schema := range forms {
		add(s, &mcp.Tool{Name: name},
			func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
				return fillIn(req, "fill this in", json.RawMessage(schema))
			})
	}
	for name, h := range map[string]handler[none]{
		"elicitation":     askName,
		"sampling":        askCapital,
		"list_roots":      askRoots,
		"request_state":   confirm,
		"tampered_state":  confirm,
		"multiple_inputs": askAll,
		"multi_round":     askTwice,
		"capabilities":    askWhatIsDeclared,
	} {
		add(s, &mcp.Tool{Name: "test_input_required_result_" + name}, h)
	}
}

// forms are what the elicitation of the scenarios of SEP-1034 and SEP-1330 asks.
var forms = map[string]string{
	"test_elicitation_sep1034_defaults": `{"type": "object", "properties": {
		"name": {"type": "string", "default": "John Doe"},
		"age": {"type": "integer", "default": 30},
		"score": {"type": "number", "default": 95.5},
		"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "default": true}
	}}`,
	"test_elicitation_sep1330_enums": `{"type": "object", "properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "One"}, {"const": "value2", "title": "Two"},
			{"const": "value3", "title": "Three"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
		"untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3,
			"items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [
			{"const": "value1", "title": "One"}, {"const": "value2", "title": "Two"},
			{"const": "value3", "title": "Three"}]}}
	}}`,
}

func sample(_ context.Context, req *mcp.CallToolRequest, in struct {
	Prompt string `json:"prompt"`
}) (*mcp.CallToolResult, error) {
	if text, ok := completed(req, "completion"); ok {
		return answer("LLM response: " + text), nil
	}
	return ask("", mcp.InputRequestMap{"completion": completion(in.Prompt)}), nil
}

func elicit(_ context.Context, req *mcp.CallToolRequest, in struct {
	Message string `json:"message"`
}) (*mcp.CallToolResult, error) {
	return fillIn(req, in.Message, form("username", "string"))
}

// fillIn asks for a form and answers what the user did with it.
func fillIn(req *mcp.CallToolRequest, message string, schema any) (*mcp.CallToolResult, error) {
	got, ok := req.Params.InputResponses["form"].(*mcp.ElicitResult)
	if !ok {
		return ask("", mcp.InputRequestMap{"form": &mcp.ElicitParams{Message: message, RequestedSchema: schema}}), nil
	}
	return answer(fmt.Sprintf("User response: action=%s, content=%v", got.Action, got.Content)), nil
}

func askName(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if name, ok := accepted(req.Params.InputResponses, "user_name")["name"].(string); ok {
		return answer("Hello, " + name), nil
	}
	return ask("", mcp.InputRequestMap{"user_name": question("What is your name?", "name")}), nil
}

func askCapital(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if text, ok := completed(req, "capital_question"); ok {
		return answer(text), nil
	}
	return ask("", mcp.InputRequestMap{"capital_question": completion("What is the capital of France?")}), nil
}

func askRoots(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if roots, ok := rooted(req, "client_roots"); ok {
		return answer(roots), nil
	}
	return ask("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}), nil
}

// confirm takes an answer only with the state that it gave out with the question.
func confirm(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	const state = "confirm"
	if accepted(req.Params.InputResponses, "confirm") == nil {
		return ask(seal(state), mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "Sure?",
			RequestedSchema: form("ok", "boolean")}}), nil
	}
	if got, err := open(req.Params.RequestState); err != nil || got != state {
		return nil, errState
	}
	return answer("state-ok"), nil
}

func askAll(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	name, hasName := accepted(req.Params.InputResponses, "user_name")["name"].(string)
	greeting, hasGreeting := completed(req, "greeting")
	roots, hasRoots := rooted(req, "client_roots")
	if hasName && hasGreeting && hasRoots {
		return answer(fmt.Sprintf("%s, %s, with %s", greeting, name, roots)), nil
	}
	return ask(seal("all"), mcp.InputRequestMap{
		"user_name":    question("What is your name?", "name"),
		"greeting":     completion("Greet someone."),
		"client_roots": &mcp.ListRootsParams{},
	}), nil
}

// askTwice keeps the answer to its first question in the state of the second.
func askTwice(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return ask(seal("name"), mcp.InputRequestMap{"step1": question("What is your name?", "name")}), nil
	}
	state, err := open(req.Params.RequestState)
	if err != nil {
		return nil, err
	}
	if name, ok := strings.CutPrefix(state, "color of "); ok {
		color := accepted(req.Params.InputResponses, "step2")["color"]
		return answer(fmt.Sprintf("%s likes %v", name, color)), nil
	}
	name := accepted(req.Params.InputResponses, "step1")["name"]
	return ask(seal(fmt.Sprintf("color of %v", name)),
		mcp.InputRequestMap{"step2": question("Which color do you like?", "color")}), nil
}

func askWhatIsDeclared(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if len(req.Params.InputResponses) > 0 {
		return answer("the client answered"), nil
	}
	questions := mcp.InputRequestMap{}
	if c := req.ClientCapabilities(); c != nil {
		if c.Elicitation != nil {
			questions["user_name"] = question("What is your name?", "name")
		}
		if c.Sampling != nil {
			questions["greeting"] = completion("Greet someone.")
		}
		if c.RootsV2 != nil {
			questions["client_roots"] = &mcp.ListRootsParams{}
		}
	}
	if len(questions) == 0 {
		return answer("the client declared nothing"), nil
	}
	return ask("", questions), nil
}

func ask(state string, questions mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: questions, RequestState: state}
}

// question is a form with one field for a text.
func question(message, field string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: form(field, "string")}
}

// form returns the schema of a form with one field.
func form(field, kind string) map[string]any {
	return map[string]any{"type": "object", "required": []string{field},
		"properties": map[string]any{field: map[string]any{"type": kind}}}
}

func completion(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: prompt}}}}
}

// accepted returns the content of a form, nil unless the user has sent it.
func accepted(answers mcp.InputResponseMap, key string) map[string]any {
	if got, ok := answers[key].(*mcp.ElicitResult); ok && got.Action == "accept" {
		return got.Content
	}
	return nil
}

// completed returns the text of the model's message.
func completed(req *mcp.CallToolRequest, key string) (string, bool) {
	got, ok := req.Params.InputResponses[key].(*mcp.CreateMessageWithToolsResult)
	if !ok {
		return "", false
	}
	var text strings.Builder
	for _, part := range got.Content {
		if part, ok := part.(*mcp.TextContent); ok {
			text.WriteString(part.Text)
		}
	}
	return text.String(), true
}

// rooted returns the URIs of the client's roots.
func rooted(req *mcp.CallToolRequest, key string) (string, bool) {
	got, ok := req.Params.InputResponses[key].(*mcp.ListRootsResult)
	if !ok {
		return "", false
	}
	var uris []string
	for _, root := range got.Roots {
		uris = append(uris, root.URI)
	}
	return strings.Join(uris, " "), true
}

// stateKey signs the state that goes through the client.
var stateKey = rand.Text()

var errState = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not what this server gave out"}

// seal returns the state with a signature.
func seal(state string) string { return state + "." + signature(state) }

// open returns the state that seal was given, or errState.
func open(sealed string) (string, error) {
	i := strings.LastIndexByte(sealed, '.')
	if i < 0 || !hmac.Equal([]byte(sealed[i+1:]), []byte(signature(sealed[:i]))) {
		return "", errState
	}
	return sealed[:i], nil
}

func signature(state string) string {
	mac := hmac.New(sha256.New, []byte(stateKey))
	mac.Write([]byte(state))
	return hex.EncodeToString(mac.Sum(nil))
}
