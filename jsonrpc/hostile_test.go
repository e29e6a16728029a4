package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

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

func TestParseRefusesMessagesCutAnywhere(t *testing.T) {
	const whole = "{\"jsonrpc\":\"2.0\", \"id\" :-1.5e+3,\"method\":\"m\\u00e9\\\\\u00e9\U0001F600\",\"params\":{\"a\":[true,false,null,{},[],\"\"],\"b\":{\"c\":0}}}"
	if _, err := jsonrpc.Parse([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for _, sample := range []string{whole, strings.ReplaceAll(whole, ",", ",\r\n")} {
		for i := range len(sample) {
			m, err := jsonrpc.Parse([]byte(sample[:i]))
			if code(t, err) != jsonrpc.CodeParseError || m != nil {
				t.Errorf("cut after %d bytes: got %v, %v", i, m, err)
			}
		}
	}
}

// Every single byte of a message replaced by every other: Parse and
// encoding/json agree on what is JSON.
func TestParseJudgesDamagedBytesAsEncodingJSONDoes(t *testing.T) {
	const sample = `{"jsonrpc":"2.0","id":-1.5e+3,"method":"m\u00e9\n","params":[true,null,{"a":0}]}`
	for i := range len(sample) {
		for c := range 128 { // above that it is a question of UTF-8
			damaged := []byte(sample)
			damaged[i] = byte(c)
			_, err := jsonrpc.Parse(damaged)
			refused := code(t, err) == jsonrpc.CodeParseError
			if valid := json.Valid(damaged); valid == refused {
				t.Errorf("byte %d replaced by %q: valid %v, got %v", i, rune(c), valid, err)
			}
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
	if v, ok := jsonrpc.Member(nested("[", "", "]", 10_000), "id"); ok {
		t.Errorf("Member in 10,000 levels: got %s", v)
	}
}

// A message of 100 MB is not copied when it stands on one line, and once when it does
// not.
func TestParseOfAHundredMegabytes(t *testing.T) {
	size := 100 << 20
	if raceDetector {
		size /= 10 // each byte costs 100 times as much
	}
	data := bytes.Repeat([]byte("x"), size)
	copy(data, `{"jsonrpc":"2.0","id":1,"result":"`)
	copy(data[size-2:], `"}`)

	allocated := allocates(func() {
		m, err := jsonrpc.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if m.ID != "1" || len(m.Result()) != size-len(`{"jsonrpc":"2.0","id":1,"result":}`) {
			t.Errorf("got id %s and a result of %d bytes", m.ID, len(m.Result()))
		}
	})
	if allocated > 1<<20 {
		t.Errorf("allocated %d bytes for a message on one line", allocated)
	}

	data[size-2], data[size-1] = '\n', 'x' // inside the string: not JSON
	if _, err := jsonrpc.Parse(data); code(t, err) != jsonrpc.CodeParseError {
		t.Errorf("unclosed: got %v", err)
	}
	copy(data[size-3:], "\"\n}")
	allocated = allocates(func() {
		if m, err := jsonrpc.Parse(data); err != nil || len(m.Raw()) != size-1 {
			t.Errorf("with a line break: got %v, %v", m, err)
		}
	})
	if allocated > 5*uint64(size)/2 { // the race detector makes it two copies
		t.Errorf("allocated %d bytes for a message with a line break", allocated)
	}
}

// allocates returns how many bytes f allocates.
func allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
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
