package sse_test

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
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

// Behind a trusted proxy the limits hold for the clients, not for the proxy.
func TestLimitsBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{
			sse:    sse.Options{Options: front.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}, // httptest's peer
			limits: connstate.Limits{MaxPerIP: 1},
		})
		a := f.open(t, "/sse", "X-Forwarded-For", "198.51.100.1")
		b := f.open(t, "/sse", "X-Forwarded-For", "198.51.100.2")
		w := ask(f, "", http.MethodGet, "/sse", func(r *http.Request) { r.Header.Set("X-Forwarded-For", "198.51.100.77, 198.51.100.1") })
		if w.Code != http.StatusTooManyRequests {
			t.Errorf("got %d", w.Code)
		}
		a.leave()
		b.leave()
	})
}

// A request that is refused does not count as a connection.
func TestRefusalsHoldNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{limits: connstate.Limits{MaxConnections: 1}})
		for range 5 {
			ask(f, "", http.MethodGet, "/sse?auto=x", nil)
			ask(f, "", http.MethodPost, "/sse", nil)
		}
		f.open(t, "/sse").leave()
		if f.registry.Len() != 0 {
			t.Errorf("%d connections are left", f.registry.Len())
		}
	})
}
