package jsonrpc_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestParseRefuses(t *testing.T) {
	const syntax, invalid = jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest
	long := strings.Repeat("9", jsonrpc.MaxIDBytes+1)
	for _, tc := range []struct {
		in   string
		code int
		id   jsonrpc.ID // of the message beside the error; "" for no message
		says string
	}{
		{"", syntax, "", "empty"},
		{"{", syntax, "", "member name expected at byte 1"},
		{"nul", syntax, "", "unexpected end"},
		{"{}{}", syntax, "", "more data after the message at byte 2"},
		{`{"jsonrpc":"2.0",,"method":"a"}`, syntax, "", "member name expected"},
		{`{"a":1.}`, syntax, "", "digit expected"},
		{`{"a":"\x"}`, syntax, "", "invalid escape"},
		{`{"a":"\u12g4"}`, syntax, "", `invalid \u escape`},
		{`{"a":"\`, syntax, "", "unexpected end in a string"},
		{"{\"a\":\"\x00\"}", syntax, "", "control character 0x00 in a string at byte 6"},
		{"\ufeff{}", syntax, "", "unexpected character"}, // a BOM: RFC 8259 section 8.1
		{"{\"a\":\"\xff\"}", syntax, "", "it is not UTF-8"},

		{`[]`, invalid, "", "batches are not supported"},
		{`[{"jsonrpc":"2.0","id":1,"method":"a"}]`, invalid, "", "batches are not supported"},
		{`null`, invalid, "", "is an object"},
		{`{"jsonrpc":"2.0"}`, invalid, "", `either "method", "result" or "error"`},
		{`{"jsonrpc":"2.0","id":1}`, invalid, "1", `either "method", "result" or "error"`},
		{`{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, invalid, "1", `either "method", "result" or "error"`},
		{`{"id":7,"method":"a"}`, invalid, "7", `"jsonrpc" must be "2.0"`},
		{`{"jsonrpc":"1.0","id":"x","method":"a"}`, invalid, `"x"`, `"jsonrpc" must be "2.0"`},
		{`{"jsonrpc":2.0,"id":1,"method":"a"}`, invalid, "1", `"jsonrpc" must be "2.0"`},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, invalid, "1", `"method" must be a string`},
		{`{"jsonrpc":"2.0","id":1,"method":"a","result":1}`, invalid, "1", `neither "result" nor "error"`},
		{`{"jsonrpc":"2.0","id":1,"method":"a","params":5}`, invalid, "1", `"params" must be`},
		{`{"jsonrpc":"2.0","id":null,"method":"a"}`, invalid, "", "must not be null"},
		{`{"jsonrpc":"2.0","id":true,"method":"a"}`, invalid, "", "must be a string or a number"},
		{`{"jsonrpc":"2.0","id":` + long + `,"method":"a"}`, invalid, "", "longer than 1024 bytes"},
		{`{"jsonrpc":"2.0","id":"` + long + `","result":{}}`, invalid, "", "longer than 1024 bytes"},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`, invalid, "", `duplicate member "id"`},
		{`{"jsonrpc":"2.0","\u006A\u0073onrpc":"2.0","method":"a"}`, invalid, "", `duplicate member "jsonrpc"`},
	} {
		m, err := jsonrpc.Parse([]byte(tc.in))
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok {
			t.Errorf("Parse(%.80q): got error %v, want a *jsonrpc.Error", tc.in, err)
			continue
		}
		if e.Code != tc.code || !strings.Contains(e.Message, tc.says) {
			t.Errorf("Parse(%.80q): got %d %q, want %d with %q", tc.in, e.Code, e.Message, tc.code, tc.says)
		}
		var id jsonrpc.ID
		if m != nil {
			id = m.ID
			if m.Kind != jsonrpc.Invalid {
				t.Errorf("Parse(%.80q): got kind %v beside an error", tc.in, m.Kind)
			}
		}
		if id != tc.id || m != nil && tc.id == "" {
			t.Errorf("Parse(%.80q): got message %v with id %q, want id %q", tc.in, m, id, tc.id)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Errorf("Parse(%.80q): the error cannot be sent: %v", tc.in, err)
		}
	}
}

// The message is on one line already: no copy is made of it.
func TestParseKeepsTheBytesItWasGiven(t *testing.T) {
	in := []byte(` {"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}` + "\n")
	m, err := jsonrpc.Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	if &m.Raw()[0] != &in[1] {
		t.Error("raw is a copy")
	}
	params := m.Params()
	if len(params) != cap(params) {
		t.Errorf("appending to params would write into the message: len %d, cap %d", len(params), cap(params))
	}
}

// Logs may have the text of a message, which has no part of its content.
func TestMessageString(t *testing.T) {
	m := mustParse(t, `{"jsonrpc":"2.0","id":"secret","method":"tools/call","params":{"key":"secret"}}`)
	if got, want := m.String(), "request tools/call (79 bytes)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
