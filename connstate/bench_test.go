package connstate_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// BenchmarkAnswer is a request from its POST to its answer in the stream.
func BenchmarkAnswer(b *testing.B) {
	r := connstate.NewRegistry(connstate.Limits{}, connstate.Options{})
	c, err := r.Open(connstate.Client{Dialect: connstate.EventMessage})
	if err != nil {
		b.Fatal(err)
	}
	c.Bind(nothing{})
	b.Cleanup(func() { c.Close("client"); r.Remove(c) })
	c.Attach(func(connstate.Event) bool { return true })
	response := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	size := connstate.Event{Data: response}.Size()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.BeginID("1", "tools/call"); err != nil {
			b.Fatal(err)
		}
		if !c.Answer("1", response, "") {
			b.Fatal("the request was answered before")
		}
		c.Written(size)
	}
}
