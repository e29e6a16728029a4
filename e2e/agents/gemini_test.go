//go:build agents

package agents

import (
	"encoding/json"
	"net/http"
	"strings"
)

// routing is what the router of Gemini CLI wants to know, and whoever else asks for JSON gets.
const routing = `{"reasoning":"It is simple.","model_choice":"flash","complexity_reasoning":"It is simple.","complexity_score":1}`

// gemini is the API of Google.
type gemini struct{}

func (gemini) read(path string, body []byte) (turn, error) {
	var m struct {
		Tools []struct {
			FunctionDeclarations []struct {
				Name        string `json:"name"`
				Description string `json:"description"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Contents []struct {
			Parts []struct {
				FunctionResponse json.RawMessage `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
		GenerationConfig struct {
			ResponseMIMEType string `json:"responseMimeType"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return turn{}, err
	}
	t := turn{
		stream: strings.Contains(path, ":stream"),
		json:   m.GenerationConfig.ResponseMIMEType == "application/json",
	}
	for _, group := range m.Tools {
		for _, tool := range group.FunctionDeclarations {
			t.tools = append(t.tools, offer{name: tool.Name, description: tool.Description})
		}
	}
	for _, content := range m.Contents {
		for _, part := range content.Parts {
			if part.FunctionResponse != nil {
				t.results = append(t.results, part.FunctionResponse)
			}
		}
	}
	return t, nil
}

func (gemini) write(w http.ResponseWriter, t turn, a action) {
	part := object{"text": a.text}
	if a.calls() {
		part = object{"functionCall": object{"id": a.id, "name": a.tool.name, "args": json.RawMessage(a.arguments)}}
	}
	answer := object{
		"candidates": []any{object{
			"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []any{part}},
		}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}
	if t.stream {
		writeEvents(w, event{data: answer})
	} else {
		writeJSON(w, answer)
	}
}
