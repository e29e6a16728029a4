package sse_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name    string
		limits  connstate.Limits
		drain   bool
		open    int
		status  int
		message string
		reason  string
	}{
		{"connections", connstate.Limits{MaxConnections: 2}, false, 2, 503, "too many connections: the limit is 2", metrics.RejectedMaxConnections},
		{"per address", connstate.Limits{MaxPerIP: 2}, false, 2, 429, "from your address: the limit is 2", metrics.RejectedPerIP},
		{"rate", connstate.Limits{Rate: 0.5, Burst: 3}, false, 3, 429, "the limit is 0.5 connections a second", metrics.RejectedRate},
		{"draining", connstate.Limits{}, true, 1, 503, "shutting down", metrics.RejectedDraining},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, config{limits: test.limits})
				var open []*get
				for range test.open {
					open = append(open, f.open(t, "/sse"))
				}
				if test.drain {
					f.registry.Drain()
				}
				w := ask(f, "", http.MethodGet, "/sse", nil)
				after, err := strconv.Atoi(w.Header().Get("Retry-After"))
				if w.Code != test.status || err != nil || after < 1 || after > 10 {
					t.Errorf("got %d, Retry-After %q, want %d", w.Code, w.Header().Get("Retry-After"), test.status)
				}
				if e, ok := refusalOf(w.Body.String()); !ok || !strings.Contains(e.Message, test.message) {
					t.Errorf("got %s, want it to say %q", w.Body, test.message)
				}
				if n := f.count(t, "mcp_sse_connections_rejected_total", "reason", test.reason); n != 1 {
					t.Errorf("got %v rejections counted", n)
				}
				open[0].leave()
				time.Sleep(time.Duration(after) * time.Second)
				if !test.drain {
					g := f.open(t, "/sse") // there is room again
					g.leave()
				}
				for _, g := range open[1:] {
					g.leave()
				}
			})
		})
	}
}
