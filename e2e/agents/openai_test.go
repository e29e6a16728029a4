//go:build agents

package agents

import (
	"encoding/json"
	"net/http"
)

// completions is the Chat Completions API of OpenAI.
type completions struct{}

func (completions) read(_ string, body []byte) (turn, error) {
	var m struct {
		Stream bool `json:"stream"`
		Tools  []struct {
			Function struct {
				Name        string `json:"name"`
				Description string `json:"description"`
			} `json:"function"`
		} `json:"tools"`
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return turn{}, err
	}
	t := turn{stream: m.Stream}
	for _, tool := range m.Tools {
		t.tools = append(t.tools, offer{name: tool.Function.Name, description: tool.Function.Description})
	}
	for _, raw := range m.Messages {
		var message struct {
			Role string `json:"role"`
		}
		if json.Unmarshal(raw, &message) == nil && message.Role == "tool" {
			t.results = append(t.results, raw)
		}
	}
	return t, nil
}

func (completions) write(w http.ResponseWriter, t turn, a action) {
	message, reason := object{"role": "assistant", "content": a.text}, "stop"
	if a.calls() {
		message, reason = object{"role": "assistant", "content": nil, "tool_calls": []any{object{
			"index": 0, "id": a.id, "type": "function",
			"function": object{"name": a.tool.name, "arguments": a.arguments},
		}}}, "tool_calls"
	}
	usage := object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	if !t.stream {
		writeJSON(w, object{
			"id": "chat_1", "object": "chat.completion", "created": 1, "model": modelName, "usage": usage,
			"choices": []any{object{"index": 0, "finish_reason": reason, "message": message}},
		})
		return
	}
	chunk := func(choices ...any) object {
		return object{
			"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": modelName, "choices": append([]any{}, choices...),
		}
	}
	last := chunk()
	last["usage"] = usage
	writeEvents(w,
		event{data: chunk(object{"index": 0, "delta": message, "finish_reason": nil})},
		event{data: chunk(object{"index": 0, "delta": object{}, "finish_reason": reason})},
		event{data: last},
		event{data: "[DONE]"},
	)
}

// responses is the Responses API of OpenAI.
type responses struct{}

func (responses) read(_ string, body []byte) (turn, error) {
	type tool struct {
		Type        string `json:"type"`
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	var m struct {
		Stream bool `json:"stream"`
		Tools  []struct {
			tool
			Tools []tool `json:"tools"` // of a namespace
		} `json:"tools"`
		Input json.RawMessage `json:"input"` // a string, or items
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return turn{}, err
	}
	t := turn{stream: m.Stream}
	for _, outer := range m.Tools {
		if outer.Type != "namespace" {
			t.tools = append(t.tools, offer{name: outer.Name, description: outer.Description})
		}
		for _, inner := range outer.Tools {
			t.tools = append(t.tools, offer{name: inner.Name, namespace: outer.Name, description: inner.Description})
		}
	}
	var items []json.RawMessage
	_ = json.Unmarshal(m.Input, &items) // a string has no results
	for _, raw := range items {
		var item tool
		if json.Unmarshal(raw, &item) == nil && item.Type == "function_call_output" {
			t.results = append(t.results, raw)
		}
	}
	return t, nil
}

func (responses) write(w http.ResponseWriter, t turn, a action) {
	item := object{
		"type": "message", "id": "msg_" + a.id, "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": a.text, "annotations": []any{}}},
	}
	if a.calls() {
		item = object{
			"type": "function_call", "id": "fc_" + a.id, "call_id": a.id, "status": "completed",
			"name": a.tool.name, "arguments": a.arguments,
		}
		if a.tool.namespace != "" {
			item["namespace"] = a.tool.namespace
		}
	}
	response := func(status string, output ...any) object {
		return object{
			"id": "resp_" + a.id, "object": "response", "status": status, "model": modelName, "output": append([]any{}, output...),
			"usage": object{
				"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
				"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
			},
		}
	}
	if !t.stream {
		writeJSON(w, response("completed", item))
		return
	}
	writeEvents(w,
		event{"response.created", object{"type": "response.created", "response": response("in_progress")}},
		event{"response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": item}},
		event{"response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item}},
		event{"response.completed", object{"type": "response.completed", "response": response("completed", item)}},
	)
}
