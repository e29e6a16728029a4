package ssetest

import (
	"encoding/json"
	"net/http"
)

// Recording is what an agent sent to the gateway in a run of make agents, and the kinds of answers it
// got. e2e/agents writes it, and e2e replays it.
type Recording struct {
	Agent     string     `json:"agent"`
	Version   string     `json:"version"`
	Exchanges []Exchange `json:"exchanges"`
}

// Exchange is a request and the kind of its answer, or the restart of the gateway.
type Exchange struct {
	Restart bool              `json:"restart,omitempty"`
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path,omitempty"` // ENDPOINT n: what stream n of HTTP+SSE has named, from 0
	Header  map[string]string `json:"header,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Status  int               `json:"status,omitempty"`
	Type    string            `json:"type,omitempty"` // of the content
}

// OpensStream reports whether it is the GET of HTTP+SSE.
func (e *Exchange) OpensStream() bool {
	return e.Method == http.MethodGet && e.Type == "text/event-stream" && e.Header["Mcp-Session-Id"] == ""
}
