// Package plainjson writes JSON with <, > and & as they are: no web page reads it, and people do.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Encode returns a value as JSON on one line, without an end of the line.
func Encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
