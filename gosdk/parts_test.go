package gosdk

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// FuzzServerMessages has a server send any JSON as result, error data and params: each
// comes out as one line of JSON in UTF-8, and means the same to a parser.
func FuzzServerMessages(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, "{\n\"a\":\r\n[1.50,\"\\n\"]}", "\"\xff\"", "null", " 9007199254740993 ", "{\"\xff\":\"\u2028\"}"} {
		f.Add([]byte(seed), "text")
	}
	id, err := sdk.MakeID(float64(7))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if !json.Valid(data) {
			data, _ = json.Marshal(string(data)) // a string has a JSON form
		}
		check := func(what string, got, want []byte) {
			if !json.Valid(got) || !utf8.Valid(got) || bytes.ContainsAny(got, "\n\r") {
				t.Fatalf("%s of %q is %q", what, data, got)
			}
			var a, b bytes.Buffer
			if json.Compact(&a, got) != nil || json.Compact(&b, bytes.ToValidUTF8(want, []byte("\uFFFD"))) != nil || a.String() != b.String() {
				t.Fatalf("%s of %q is %q", what, want, got)
			}
		}
		member := func(msg sdk.Message, members ...string) []byte {
			got, err := encodeMessage(msg)
			ssetest.Must(t, err)
			part, _ := rawjson.Member(got, members...)
			return part
		}
		check("result", member(&sdk.Response{ID: id, Result: data}, "result"), data)
		check("data", member(&sdk.Response{ID: id, Error: &sdk.Error{Code: -1, Message: text, Data: data}}, "error", "data"), data)
		check("params", member(&sdk.Request{ID: id, Method: text, Params: data}, "params"), data)
		check("params", member(&sdk.Request{Method: text, Params: data}, "params"), data)
	})
}
