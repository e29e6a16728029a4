package jsonrpc

import (
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Split returns the elements, 1 to limit, of an array from outside. It fails with an *Error.
func Split(data []byte, limit int) (elements []json.RawMessage, err *Error) {
	if !json.Valid(data) {
		return nil, Errorf(CodeParseError, "the body is not JSON")
	}
	n := 0
	collect := func(element json.RawMessage) {
		n++
		if n <= limit { // millions of empty elements would take ten times their size
			elements = append(elements, element)
		}
	}
	if !rawjson.Each(data, collect) {
		return nil, Errorf(CodeInvalidRequest, "the batch is not an array, or nested too deeply")
	}
	if n == 0 || n > limit {
		return nil, Errorf(CodeInvalidRequest, "the batch has %d messages: it must have 1 to %d", n, limit)
	}
	return elements, nil
}
