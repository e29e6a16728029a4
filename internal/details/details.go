// Package details hides in an error what a server says of itself from clients that may not see it.
//
// The code that makes such an error does not know which client will get it, and the error travels as a message. So
// its message is without those words, and they are a member of its data, with a key that no server knows. [Split]
// takes them out: it must do so before the message leaves the process.
package details

import (
	"bytes"
	"crypto/rand"
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Words are what an error says to those who may see the details of errors.
type Words struct {
	Key     string `json:"key"`
	Message string `json:"message"`
}

// key is another one in each process: no server can write Words.
var key = rand.Text()

// New returns Words that take the place of the message of an error, as the member "details" of its data.
func New(message string) *Words { return &Words{Key: key, Message: message} }

// Split returns an error response without its Words, and with them as its message. It reports false
// for a message without any.
func Split(response []byte) (plain, full []byte, ok bool) {
	if !bytes.Contains(response, []byte(key)) {
		return nil, nil, false
	}
	m, err := jsonrpc.Parse(response)
	if err != nil || m.Error() == nil {
		return nil, nil, false
	}
	var e struct {
		Code    int                        `json:"code"`
		Message string                     `json:"message"`
		Data    map[string]json.RawMessage `json:"data"`
	}
	var words Words
	if json.Unmarshal(m.Error(), &e) != nil || json.Unmarshal(e.Data["details"], &words) != nil || words.Key != key {
		return nil, nil, false
	}
	delete(e.Data, "details")
	made := &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
	plain = jsonrpc.NewError(m.ID, made)
	made.Message = words.Message
	return plain, jsonrpc.NewError(m.ID, made), true
}
