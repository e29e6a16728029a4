package gateway_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// The log shows every request of a client: answered by the gateway itself, by the
// server after a wait at the gate, or by a timeout.
func TestEveryRequestIsInTheLog(t *testing.T) {
	var out bytes.Buffer
	u := &server{dial: slow(10 * time.Second)}
	opts := gateway.Options{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(request("1", "ping"), request("2", "server/discover"), request("3", "tools/list"), request("3", "tools/call"))
		p.post(initialize("4", "2025-06-18", emptyDeclared))
		time.Sleep(6 * time.Second)
		p.post(request("5", "tools/list"))
		time.Sleep(5 * time.Second)
		p.take()
		var got []string
		for line := range strings.Lines(out.String()) {
			_, line, found := strings.Cut(line, `msg="mcp POST `)
			line = strings.Replace(line, " connectionId="+p.c.ShortID(), "", 1)
			line, _, _ = strings.Cut(line, " err=")
			if found {
				got = append(got, strings.TrimSpace(line))
			}
		}
		want := []string{
			`start" requestId=1 method=ping`, `ok" requestId=1 method=ping duration=0s`,
			`start" requestId=2 method=server/discover`, `failed" requestId=2 method=server/discover duration=0s reason=-32601`,
			`start" requestId=3 method=tools/list`, `failed" requestId=3 method=tools/call`,
			`start" requestId=4 method=initialize`,
			`slow" requestId=3 method=tools/list duration=5s reason=initialization_error`,
			`start" requestId=5 method=tools/list`,
			`slow" requestId=4 method=initialize duration=10s`,
			`ok" requestId=5 method=tools/list duration=4s`,
		}
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
			t.Errorf("got\n%s\nwant\n%s", g, w)
		}
	})
}
