package connstate_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// opener opens connections in a registry and expects how that ends.
type opener struct {
	t *testing.T
	*connstate.Registry
	prom *prometheus.Registry
}

func newOpener(t *testing.T, limits connstate.Limits) opener {
	prom := prometheus.NewRegistry()
	return opener{t, connstate.NewRegistry(limits, connstate.Options{Metrics: metrics.New(prom)}), prom}
}

// open expects a connection for a reason of "", else a refusal for it.
func (o opener) open(from, reason string) *connstate.Connection {
	o.t.Helper()
	var client connstate.Client
	if from != "" {
		client.Addr = addr(from)
	}
	return o.openClient(client, reason)
}

func (o opener) openClient(client connstate.Client, reason string) *connstate.Connection {
	o.t.Helper()
	c, err := o.Open(client)
	got := ""
	if err != nil {
		limit, ok := errors.AsType[*connstate.LimitError](err)
		if !ok || c != nil || limit.RetryAfter <= 0 || limit.Error() == "" {
			o.t.Errorf("%q from %s: got %v, %#v", client.Principal, client.Addr, c, err)
			return nil
		}
		got = limit.Reason
	}
	equal(o.t, fmt.Sprintf("refusal of %q from %s", client.Principal, client.Addr), got, reason)
	return c
}

func (o opener) end(c *connstate.Connection) {
	c.Close(connstate.ClosedClient)
	o.Remove(c)
}

func TestFindAndVerify(t *testing.T) {
	o := newOpener(t, connstate.Limits{})
	a, b := o.open("192.0.2.1", ""), o.open("192.0.2.1", "")
	if got, ok := o.Find(a.ID()); !ok || got != a || a.ID() == b.ID() {
		t.Errorf("got %v under %s", got, a.ID())
	}
	if c, ok := o.Find(b.ID() + "A"); ok {
		t.Errorf("found %v under another id", c)
	}
	if _, err := o.OpenAs(connstate.Client{}, a.ID(), nil); !errors.Is(err, connstate.ErrTaken) {
		t.Errorf("an id twice: got %v", err)
	}
	o.end(a)
	if !o.IDs().Verify(a.ID(), "") {
		t.Error("the id of a closed connection is not known any more")
	}
	o.IDs().End(a.ID())
	if o.IDs().Verify(a.ID(), "") || !o.IDs().Verify(b.ID(), "") {
		t.Error("the wrong id has ended")
	}
}

func TestRemoveForgetsOnce(t *testing.T) {
	o := newOpener(t, connstate.Limits{MaxConnections: 2, MaxPerIP: 2})
	a, b := o.open("192.0.2.1", ""), o.open("192.0.2.1", "")
	a.Close(connstate.ClosedSlow)
	if got, ok := o.Find(a.ID()); !ok || got != a {
		t.Error("forgotten before it was removed")
	}
	o.open("192.0.2.1", metrics.RejectedMaxConnections) // it still counts
	for range 3 {
		o.Remove(a)
	}
	if _, ok := o.Find(a.ID()); ok || o.Len() != 1 || len(o.All()) != 1 || o.All()[0] != b {
		t.Errorf("got %d connections, %v", o.Len(), o.All())
	}
	c := o.open("192.0.2.1", "")
	o.open("192.0.2.2", metrics.RejectedMaxConnections)
	o.end(b)
	o.end(c)
	all := ssetest.Series(t, o.prom)
	for name, want := range map[string]float64{
		"mcp_sse_connections":                                                            0,
		"mcp_sse_connections_opened_total":                                               3,
		`mcp_sse_connections_closed_total{reason="slow"}`:                                1,
		`mcp_sse_connections_closed_total{reason="client"}`:                              2,
		`mcp_sse_connections_rejected_total{reason="max_connections"}`:                   2,
		`mcp_sse_connection_state{state="initializing"}`:                                 0,
		`mcp_server_session_duration_seconds{error_type="",network_transport="tcp"}`:     0,
		`mcp_server_session_duration_seconds{error_type="slow",network_transport="tcp"}`: 0,
	} {
		equal(t, name, all[name], want)
	}
}

// One address is one IPv4 address, however written, or one IPv6 /64.
func TestMaxPerIP(t *testing.T) {
	for _, tc := range []struct {
		name         string
		same, others []string
	}{
		{"IPv4", []string{"192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1"}, []string{"192.0.2.2", "::ffff:192.0.2.3", "::c000:201"}},
		{"IPv6", []string{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:2::"}, []string{"2001:db8:1:3::1", "2001:db9:1:2::1"}},
		{"zones are local", []string{"fe80::1%eth0", "fe80::2%eth1", "fe80::1"}, []string{"fe80:0:0:1::1"}},
		{"unknown", []string{"", "", ""}, []string{"0.0.0.0", "::"}},
		{"loopback too", []string{"127.0.0.1", "127.0.0.1", "::ffff:127.0.0.1"}, []string{"127.0.0.2", "::1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := newOpener(t, connstate.Limits{MaxPerIP: 2})
			first := o.open(tc.same[0], "")
			o.open(tc.same[1], "")
			for _, from := range tc.same {
				o.open(from, metrics.RejectedPerIP)
			}
			for _, from := range tc.others {
				o.open(from, "")
			}
			o.end(first)
			o.open(tc.same[2], "")
			o.open(tc.same[0], metrics.RejectedPerIP)
		})
	}
}

// Users with tokens of their own do not take an address from one another, and who shares
// a token at several addresses does not either.
func TestLimitsOfAnAddressCountEachPrincipal(t *testing.T) {
	for reason, limits := range map[string]connstate.Limits{
		metrics.RejectedPerIP: {MaxPerIP: 2}, metrics.RejectedRate: {Rate: 0.001, Burst: 2},
	} {
		o := newOpener(t, limits)
		for _, from := range []connstate.Client{
			{Principal: "ada", Addr: addr("192.0.2.1")}, {Principal: "bob", Addr: addr("192.0.2.1")}, {Addr: addr("192.0.2.1")},
			{Principal: "ada", Addr: addr("192.0.2.2")},
		} {
			first := o.openClient(from, "")
			o.openClient(from, "")
			o.openClient(from, reason)
			o.end(first)
			if reason == metrics.RejectedPerIP {
				o.openClient(from, "")
				o.openClient(from, reason)
			}
		}
	}
}

// On this machine only the clients of a proxy that is not trusted have a rate.
func TestRateOfLoopback(t *testing.T) {
	o := newOpener(t, connstate.Limits{Rate: 0.001, Burst: 1})
	proxied := connstate.Client{Addr: addr("127.0.0.1"), Proxied: true}
	o.openClient(proxied, "")
	o.openClient(proxied, metrics.RejectedRate)
	for range 100 {
		for _, loopback := range []string{"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"} {
			o.open(loopback, "")
		}
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOpener(t, connstate.Limits{Rate: 2, Burst: 3})
		for range 3 {
			o.open("192.0.2.1", "")
		}
		o.open("192.0.2.1", metrics.RejectedRate)
		o.open("::ffff:192.0.2.1", metrics.RejectedRate)
		o.open("192.0.2.2", "")
		_, err := o.Open(connstate.Client{Addr: addr("192.0.2.1")})
		limit, _ := errors.AsType[*connstate.LimitError](err)
		equal(t, "retry after", limit.RetryAfter, 500*time.Millisecond)
		time.Sleep(limit.RetryAfter - time.Millisecond)
		o.open("192.0.2.1", metrics.RejectedRate)
		time.Sleep(time.Millisecond)
		o.open("192.0.2.1", "")
		o.open("192.0.2.1", metrics.RejectedRate)
		time.Sleep(time.Hour)
		for range 3 { // no more than the burst is saved up
			o.open("192.0.2.1", "")
		}
		o.open("192.0.2.1", metrics.RejectedRate)
		for i := range 4 {
			reason := ""
			if i == 3 {
				reason = metrics.RejectedRate
			}
			o.open(fmt.Sprintf("2001:db8::%d", i), reason)
		}
	})
}

// Connects from ever more networks use bounded memory. While there is room, the
// registry remembers networks that connect too fast.
func TestRateForgetsNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOpener(t, connstate.Limits{Rate: 0.01, Burst: 1})
		open := func(n int) {
			a := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
			c, err := o.Open(connstate.Client{Addr: a})
			must(t, err)
			o.end(c)
		}
		for n := range connstate.MaxRated {
			open(n)
		}
		equal(t, "networks remembered", o.Networks(), connstate.MaxRated)
		o.open("10.0.0.0", metrics.RejectedRate)
		for n := range 100 {
			open(connstate.MaxRated + n)
			if got := o.Networks(); got > connstate.MaxRated {
				t.Fatalf("got %d networks remembered, want at most %d", got, connstate.MaxRated)
			}
		}
		o.open("10.0.0.200", metrics.RejectedRate) // those that came last are remembered
	})
}

func TestDrainOfTheRegistry(t *testing.T) {
	o := newOpener(t, connstate.Limits{})
	a, b := o.open("192.0.2.1", ""), o.open("192.0.2.2", "")
	empty := o.Drain()
	equal(t, "a second Drain is another one", o.Drain(), empty)
	o.open("192.0.2.1", metrics.RejectedDraining)
	equal(t, "open connections go on", a.State(), connstate.Initializing)
	o.end(a)
	select {
	case <-empty:
		t.Fatal("empty with a connection left")
	default:
	}
	o.end(b)
	<-empty
	o.Remove(b)
	<-o.Drain() // of an empty one
}

// A connection is either refused by a drain or found by it.
func TestDrainMissesNoOpening(t *testing.T) {
	for range 500 {
		r := connstate.NewRegistry(connstate.Limits{}, connstate.Options{})
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 4 {
			wg.Go(func() {
				<-start
				_, _ = r.Open(connstate.Client{})
			})
		}
		close(start)
		r.Drain()
		found := len(r.All())
		wg.Wait()
		if n := len(r.All()); n != found {
			t.Fatalf("%d connections were opened after the drain had found %d", n, found)
		}
	}
}

// Sessions are connections that were ready once: what failed before must not make
// them look shorter.
func TestOnlyConnectionsThatWereReadyAreSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = `mcp_server_session_duration_seconds_sum{error_type="slow",network_transport="tcp"}`
		for _, ready := range []bool{false, true} {
			w := newWorld(t, connstate.Options{}, connstate.Client{})
			time.Sleep(2 * time.Second)
			want := 0.0
			if ready {
				must(t, w.c.Move(connstate.Ready))
				must(t, w.c.Move(connstate.Initializing)) // a session is lost
				want = 62
			}
			time.Sleep(time.Minute)
			w.c.Close(connstate.ClosedSlow)
			w.registry.Remove(w.c.Connection)
			equal(t, fmt.Sprint("seconds, ready ", ready), w.series(name), want)
		}
	})
}
