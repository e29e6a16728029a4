package statelessclient_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// listed returns how often the server was asked for its tools, over all connections.
func (f *fixture) listed() (n int) {
	for _, c := range f.server.connections() {
		n += len(c.received("tools/list"))
	}
	return n
}

// A server that does not list its tools delays the first calls a little, and no others.
func TestSilentServerDelaysFewCalls(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.silent = []string{"tools/list"}
		began := time.Now()
		var first []*response
		for i := range 5 { // on connections of their own
			first = append(first, f.begin(t, ask{method: "tools/call", params: toolCall, capabilities: askAll, id: fmt.Sprint(i)}))
		}
		synctest.Wait()
		want(t, "connections", len(f.server.connections()), 5)
		want(t, "lists", f.listed(), 1)
		for _, r := range first {
			<-r.done
			want(t, "status", r.Code, 200)
		}
		want(t, "delay of the first", time.Since(began), 5*time.Second)
		f.do(t, ask{method: "tools/call", params: toolCall, capabilities: askAll})
		want(t, "delay of the next", time.Since(began), 5*time.Second)
		want(t, "lists", f.listed(), 1)
	})
}
