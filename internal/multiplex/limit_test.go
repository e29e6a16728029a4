package multiplex

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
)

// An error about a limit names the option that sets it, and what helps.
func TestLimitNamesItsOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := &Session{relays: true, opts: Options{Server: "the server", RequestTimeout: time.Minute}}
		if got, want := relay.limitOf(&entry{stage: atServer}), "the server did not answer in 1m0s (20 times request-timeout)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		s := &Session{opts: Options{Server: "the server", RequestTimeout: 3 * time.Second, MaxRequestTimeout: 30 * time.Second}}
		began := time.Now()
		time.Sleep(3 * time.Second)
		for want, e := range map[string]*entry{
			"the request waited in the queue for the server for 3s":                                                  {started: began},
			"the server did not answer in 3s (request-timeout): raise that if it needs longer":                       {started: began, stage: atServer},
			"the server has reported no progress for 3s (request-timeout): raise that if it needs longer":            {started: began, stage: progressing},
			"the server did not answer in 30s (ten times request-timeout): raise request-timeout if it needs longer": {started: began.Add(-27 * time.Second), stage: atServer, method: mcp.MethodTaskResult},
		} {
			if got := s.limitOf(e); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}
