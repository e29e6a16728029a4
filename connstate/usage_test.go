package connstate_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// newReplica returns a registry of a cluster, whose replicas tell others what each uses.
func newReplica(t *testing.T, limits connstate.Limits) opener {
	prom := metrics.NewRegistry()
	ids := signedid.New([]byte(strings.Repeat("k", signedid.MinKey)), "", "")
	return opener{t, connstate.NewRegistry(limits, connstate.Options{Metrics: metrics.New(prom), IDs: ids, Clustered: true}), prom}
}

// Connections at other replicas count against the limits here until the next heartbeat.
func TestLimitsOfACluster(t *testing.T) {
	a, b := newReplica(t, connstate.Limits{MaxConnections: 4, MaxPerIP: 2}), newReplica(t, connstate.Limits{MaxConnections: 4, MaxPerIP: 2})
	first := a.open("192.0.2.1", "")
	b.open("192.0.2.1", "")
	b.UsedElsewhere(a.Usage())
	b.open("192.0.2.1", metrics.RejectedPerIP)
	b.open("192.0.2.2", "")
	b.open("192.0.2.3", "")
	b.open("192.0.2.4", metrics.RejectedMaxConnections)
	a.end(first)
	b.UsedElsewhere(a.Usage())
	b.open("192.0.2.1", "")
	b.open("192.0.2.5", metrics.RejectedMaxConnections)
}

// Connections that others have taken use the rate of their origin, and nobody waits for
// longer than a burst.
func TestRateOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := connstate.Limits{Rate: 2, Burst: 4}
		a, b := newReplica(t, limits), newReplica(t, limits)
		for range 3 {
			a.open("192.0.2.1", "")
		}
		a.openClient(connstate.Client{Addr: addr("127.0.0.1")}, "")
		b.UsedElsewhere(a.Usage())
		b.open("192.0.2.1", "")
		b.open("192.0.2.1", metrics.RejectedRate)
		b.open("192.0.2.2", "")
		u := a.Usage()
		if len(u.Origins) != 0 || u.Connections != 4 {
			t.Errorf("nothing was opened since: %+v", u)
		}
		one := newReplica(t, limits)
		one.open("192.0.2.1", "")
		flood := one.Usage()
		flood.Origins[0].Opened = 1_000_000
		for range 5 {
			b.UsedElsewhere(flood)
		}
		time.Sleep(2500 * time.Millisecond)
		b.open("192.0.2.1", "")
	})
}

// Only origins that use much of a limit are told, the largest first, and not who they are.
func TestUsageIsBounded(t *testing.T) {
	r := newReplica(t, connstate.Limits{MaxPerIP: 32})
	r.open("192.0.2.1", "") // a thirty-second
	for i := range 1100 {
		for range 2 + i/1099 {
			r.open(fmt.Sprintf("10.%d.%d.1", i/200, i%200), "")
		}
	}
	u := r.Usage()
	if len(u.Origins) != 512 || u.Origins[0].Open != 3 || u.Origins[1].Open != 2 || u.Connections != 2202 {
		t.Errorf("%d origins, the first two %+v, of %d connections", len(u.Origins), u.Origins[:2], u.Connections)
	}
}
