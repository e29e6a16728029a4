package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// code returns the JSON-RPC code of an error of Parse; 0 for none.
func code(t testing.TB, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		t.Fatalf("got error %v, want a *jsonrpc.Error", err)
	}
	return e.Code
}

// A message cut anywhere, and with each byte replaced by every other: Parse and
// encoding/json agree on what is JSON.
func TestParseJudgesDamageAsEncodingJSONDoes(t *testing.T) {
	const sample = `{"jsonrpc":"2.0", "id" :-1.5e+3,"method":"m\u00e9\n","params":[true,null,false,{"a":0},{},[],""]}`
	judge := func(data []byte) {
		_, err := jsonrpc.Parse(data)
		if valid := json.Valid(data); valid == (code(t, err) == jsonrpc.CodeParseError) {
			t.Errorf("%q: valid %v, got %v", data, valid, err)
		}
	}
	for i := range len(sample) {
		judge([]byte(sample[:i]))
		for c := range 128 { // above that it is a question of UTF-8
			judge([]byte(sample[:i] + string(rune(c)) + sample[i+1:]))
		}
	}
}

func TestParseBoundsDepth(t *testing.T) {
	nested := func(open, middle, shut string, levels int) []byte {
		return []byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":` +
			strings.Repeat(open, levels) + middle + strings.Repeat(shut, levels) + `}`)
	}
	for _, tc := range []struct {
		name, open, middle, shut string
	}{
		{"arrays", "[", "", "]"},
		{"objects", `{"a":`, "{}", "}"},
		{"arrays on many lines", "[\n", "", "\n]"},
		{"never closed", "[", "", ""},
	} {
		for _, levels := range []int{jsonrpc.MaxDepth, 10_000, 1_000_000} {
			m, err := jsonrpc.Parse(nested(tc.open, tc.middle, tc.shut, levels))
			if code(t, err) != jsonrpc.CodeParseError || m != nil || !strings.Contains(err.Error(), "nested over 512 levels") {
				t.Errorf("%s, %d levels: got %v, %v", tc.name, levels, m, err)
			}
		}
	}
	if _, err := jsonrpc.Parse(nested("[", "", "]", jsonrpc.MaxDepth-1)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := jsonrpc.Parse(bytes.Repeat([]byte("["), 10_000)); code(t, err) != jsonrpc.CodeParseError {
		t.Errorf("a batch of batches: got %v", err)
	}
	if v, ok := rawjson.Member(nested("[", "", "]", 10_000), "id"); ok {
		t.Errorf("Member in 10,000 levels: got %s", v)
	}
}

func TestMethodIsBounded(t *testing.T) {
	for size, ok := range map[int]bool{jsonrpc.MaxMethodBytes - 2: true, jsonrpc.MaxMethodBytes - 1: false, 4 << 20: false} {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", size) + `"}`))
		if (err == nil) != ok {
			t.Errorf("a method of %d bytes: got %v, want accepted %v", size, err, ok)
		}
		if e, _ := errors.AsType[*jsonrpc.Error](err); !ok && (e == nil || e.Code != jsonrpc.CodeInvalidRequest || m == nil || m.ID != "1") {
			t.Errorf("a method of %d bytes: got %v and %v, want an invalid request with its id", size, e, m)
		}
	}
}
