package sse_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

// fetch sends a request without a body; header as name, value.
func fetch(t testing.TB, client *http.Client, method, url string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Add(header[i], header[i+1])
	}
	return do(t, client, req)
}

// isRefusal reports whether a body is a JSON-RPC error with a code, a text and
// the id null.
func isRefusal(body string) bool {
	_, ok := refusalOf(body)
	return ok
}

type rpcError struct {
	Code    int
	Message string
}

func refusalOf(body string) (rpcError, bool) {
	var answer struct {
		Version string           `json:"jsonrpc"`
		ID      *json.RawMessage `json:"id"`
		Error   *rpcError        `json:"error"`
		Result  json.RawMessage  `json:"result"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Error == nil {
		return rpcError{}, false
	}
	// encoding/json turns null into a nil pointer, as it does a missing member
	return *answer.Error, answer.Version == "2.0" && answer.ID == nil && answer.Result == nil &&
		answer.Error.Code < 0 && answer.Error.Message != ""
}
