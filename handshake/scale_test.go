package handshake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/scaletest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// objects are params and results of about n bytes that are bad for those who look
// for a member.
func objects() map[string]func(n int) string {
	repeated := func(member string) func(n int) string {
		return func(n int) string { return "{" + strings.Repeat(member+",", n/len(member)) + member + "}" }
	}
	return map[string]func(n int) string{
		"one member":        repeated(`"a":1`),
		"capabilities":      repeated(`"capabilities":{"roots":{}}`),
		"escaped names":     repeated(`"\u0063apabilities":{"roots":{}}`),
		"versions":          repeated(`"protocolVersion":"2025-03-26"`),
		"many capabilities": func(n int) string { return `{"protocolVersion":"2025-03-26","capabilities":` + many(n) + `}` },
		"one capability": func(n int) string {
			return `{"protocolVersion":"2025-03-26","capabilities":{"experimental":` + many(n) + `}}`
		},
		"a long version": func(n int) string { return `{"protocolVersion":"` + strings.Repeat("2", n) + `","capabilities":{}}` },
		"a long name": func(n int) string {
			return `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"` + strings.Repeat(`\u0061`, n/6) + `"}}`
		},
		"white space": func(n int) string { return `{"capabilities":{` + strings.Repeat("\n", n) + `"roots":{}}}` },
	}
}

// many is an object with as many members as fit into n bytes.
func many(n int) string {
	var b strings.Builder
	b.WriteString(`{"roots":{}`)
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `,"c%d":{}`, i)
	}
	return b.String() + "}"
}

// Whatever clients and servers say of themselves, the time for it grows with its
// length alone.
func TestHandshakesTakeTimeInProportion(t *testing.T) {
	for function, call := range map[string]func(object string){
		"Exceeds":   func(object string) { handshake.Exceeds([]byte(object), []byte(`{"capabilities":{}}`)) },
		"ExceedsBy": func(object string) { handshake.Exceeds([]byte(`{"capabilities":{"roots":{}}}`), []byte(object)) },
		"Synthetic": func(object string) { handshake.Synthetic(handshake.ClientInfo{}, []byte(object)) },
		"Run": func(object string) {
			request, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + object + `}`))
			if err != nil {
				t.Fatal(err)
			}
			for _, member := range []string{"result", "error"} {
				r, err := handshake.Run(context.Background(), answering(`{"jsonrpc":"2.0","id":1,"`+member+`":`+object+`}`), []byte(object))
				if err != nil {
					continue
				}
				r.Answer(request)
				r.Server()
				r.Advertises("tools", "listChanged")
			}
		},
	} {
		for name, object := range objects() {
			t.Run(function+"/"+name, func(t *testing.T) {
				scaletest.Linear(t, 5_000, func(n int) func() {
					text := object(n)
					return func() { call(text) }
				})
			})
		}
	}
	t.Run("Exceeds/many of both", func(t *testing.T) {
		scaletest.Linear(t, 1000, func(n int) func() {
			object := []byte(`{"capabilities":` + many(n) + `}`)
			return func() { handshake.Exceeds(object, object) }
		})
	})
}

// answering is a session that answers every request with a message.
type answering string

func (a answering) Call(context.Context, string, json.RawMessage) (*jsonrpc.Message, error) {
	return jsonrpc.Parse([]byte(a))
}

func (a answering) Notify(string, json.RawMessage) error { return nil }
