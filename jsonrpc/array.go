package jsonrpc

import (
	"encoding/json"
)

// Filter returns the array with only the elements that keep accepts, their bytes
// unchanged. It returns anything but an array unchanged.
func Filter(array json.RawMessage, keep func(element json.RawMessage) bool) json.RawMessage {
	out := json.RawMessage("[")
	end := Each(array, func(element json.RawMessage) {
		if !keep(element) {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, element...)
	})
	if !end {
		return array
	}
	return append(out, ']')
}

// Each calls visit with each element of an array, and reports whether array is one.
// array must be valid JSON, as parts of a message are.
func Each(array json.RawMessage, visit func(element json.RawMessage)) bool {
	i := skipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return false
	}
	for i = skipSpace(array, i+1); i < len(array) && array[i] != ']'; {
		end, err := skipValue(array, i, 0)
		if err != nil {
			return false
		}
		visit(array[i:end:end])
		i = skipSpace(array, end)
		if i < len(array) && array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return true
}

// Split returns the elements of an array from outside, of which it must have at least one
// and at most limit. It fails with an *Error.
func Split(data []byte, limit int) (elements []json.RawMessage, err *Error) {
	if !json.Valid(data) {
		return nil, Errorf(CodeParseError, "the body is not JSON")
	}
	if !Each(data, func(element json.RawMessage) { elements = append(elements, element) }) {
		return nil, Errorf(CodeInvalidRequest, "the batch is no array, or nested too deeply")
	}
	if n := len(elements); n == 0 || n > limit {
		return nil, Errorf(CodeInvalidRequest, "the batch has %d messages: it must have 1 to %d", n, limit)
	}
	return elements, nil
}
