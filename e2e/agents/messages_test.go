//go:build agents

package agents

import (
	"encoding/json"
	"net/http"
)

// object is a JSON object of an answer.
type object = map[string]any

// messages is the Messages API of Anthropic.
type messages struct{}

func (messages) read(_ string, body []byte) (turn, error) {
	var m struct {
		Stream bool `json:"stream"`
		Tools  []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		} `json:"tools"`
		Messages []struct {
			Content json.RawMessage `json:"content"` // a string, or blocks
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return turn{}, err
	}
	t := turn{stream: m.Stream}
	for _, tool := range m.Tools {
		t.tools = append(t.tools, offer{name: tool.Name, description: tool.Description})
	}
	for _, message := range m.Messages {
		var blocks []json.RawMessage
		if json.Unmarshal(message.Content, &blocks) != nil {
			continue // a string
		}
		for _, block := range blocks {
			var kind struct {
				Type string `json:"type"`
			}
			if json.Unmarshal(block, &kind) == nil && kind.Type == "tool_result" {
				t.results = append(t.results, block)
			}
		}
	}
	return t, nil
}

func (messages) write(w http.ResponseWriter, t turn, a action) {
	message := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": modelName, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1},
	}
	block, reason := object{"type": "text", "text": ""}, "end_turn"
	delta := object{"type": "text_delta", "text": a.text}
	if a.calls() {
		block, reason = object{"type": "tool_use", "id": "toolu_" + a.id, "name": a.tool.name, "input": object{}}, "tool_use"
		delta = object{"type": "input_json_delta", "partial_json": a.arguments}
	}
	if !t.stream {
		if a.calls() {
			block["input"] = json.RawMessage(a.arguments)
		} else {
			block["text"] = a.text
		}
		message["content"], message["stop_reason"] = []any{block}, reason
		writeJSON(w, message)
		return
	}
	writeEvents(w,
		event{"message_start", object{"type": "message_start", "message": message}},
		event{"content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block}},
		event{"content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta}},
		event{"content_block_stop", object{"type": "content_block_stop", "index": 0}},
		event{"message_delta", object{
			"type": "message_delta", "usage": object{"output_tokens": 1},
			"delta": object{"stop_reason": reason, "stop_sequence": nil},
		}},
		event{"message_stop", object{"type": "message_stop"}},
	)
}
