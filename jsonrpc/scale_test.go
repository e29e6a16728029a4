package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/scaletest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// hostile are the forms of input of about n bytes that are worst for a parser.
func hostile(n int) map[string]string {
	object := func(member string) string {
		return `{"jsonrpc":"2.0","id":1,"result":{` + strings.TrimSuffix(strings.Repeat(member+",", n/(len(member)+1)), ",") + `}}`
	}
	return map[string]string{
		"one name":        object(`"a":1`),
		"escaped names":   object(`"\u0061":1`),
		"empty names":     object(`"":{}`),
		"many elements":   `{"jsonrpc":"2.0","id":1,"result":[` + strings.TrimSuffix(strings.Repeat(`1,`, n/2), ",") + `]}`,
		"nested":          strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+"}", max(1, n/1000)),
		"quotes":          `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat(`\"`, n/2) + `"}`,
		"a long string":   `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat(`x`, n) + `"}`,
		"a long number":   `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat(`1`, n) + `}`,
		"white space":     `{"jsonrpc":"2.0",` + strings.Repeat(" \n", n/2) + `"id":1,"result":{}}`,
		"a long id":       `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", n) + `","result":{}}`,
		"repeated params": `{"jsonrpc":"2.0","id":1,"method":"m","params":{` + strings.TrimSuffix(strings.Repeat(`"_meta":{"progressToken":1},`, n/28), ",") + `}}`,
	}
}

// Whatever comes from outside, the time for it grows with its length alone.
func TestEveryFunctionIsLinear(t *testing.T) {
	result := func(data string) []byte {
		v, _ := jsonrpc.Member([]byte(data), "result")
		return v
	}
	for function, call := range map[string]func(data string){
		"Parse":         func(data string) { _, _ = jsonrpc.Parse([]byte(data)) },
		"ParseReply":    func(data string) { jsonrpc.ParseReply([]byte(data)) },
		"ParseCut":      func(data string) { jsonrpc.ParseCut([]byte(data), []byte(data)) },
		"Compact":       func(data string) { jsonrpc.Compact([]byte(data)) },
		"Member":        func(data string) { jsonrpc.Member([]byte(data), "result", "a", "b") },
		"ReplaceMember": func(data string) { jsonrpc.ReplaceMember([]byte(data), []byte("2"), "result", "a") },
		"SetMember":     func(data string) { jsonrpc.SetMember(result(data), []byte("2"), "a") },
		"RemoveMember":  func(data string) { jsonrpc.RemoveMember(result(data), "a") },
		"Filter":        func(data string) { jsonrpc.Filter(result(data), func(json.RawMessage) bool { return true }) },
		"Text":          func(data string) { jsonrpc.Text(result(data)) },
		"Integer":       func(data string) { jsonrpc.Integer(result(data)) },
		"Param": func(data string) {
			if m, err := jsonrpc.Parse([]byte(data)); err == nil {
				p, _ := m.Param("_meta", "progressToken")
				if p.Found() {
					m.WithNumber(5, p)
				}
			}
		},
	} {
		t.Run(function, func(t *testing.T) {
			for form := range hostile(10) {
				t.Run(form, func(t *testing.T) {
					scaletest.Linear(t, 10_000, func(n int) func() {
						data := hostile(n)[form]
						return func() { call(data) }
					})
				})
			}
		})
	}
}
