//go:build all

package cluster_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// TestFiftyReplicas logs what the heartbeats of replicas cost at NATS.
func TestFiftyReplicas(t *testing.T) {
	const replicas, seconds = 50, 5
	for _, origins := range []int{0, 64, 1024} {
		bubble(t, func(t *testing.T) {
			b := startBroker(t, func(o *server.Options) { o.MaxPayload = 0 })
			var names []string
			for i := range replicas {
				names = append(names, fmt.Sprintf("replica-%02d", i))
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			all := joinAll(t, b, echo, names...)
			for _, r := range all {
				r.set(func() {
					r.usage.Connections = 10_000
					for i := range origins {
						r.usage.Origins = append(r.usage.Origins, connstate.OriginUsage{Origin: uint64(i) << 40, Open: 100, Opened: 10})
					}
				})
			}
			time.Sleep(3 * time.Second)
			runtime.GC()
			runtime.ReadMemStats(&after)
			start := b.counts(t)
			time.Sleep(seconds * time.Second)
			c := b.counts(t).less(start)
			t.Logf("%d replicas, %d origins: each sends %.2f messages and %.0f bytes a second, and gets %.1f and %.0f; subjects at NATS: %d; heap: %.0f KiB a replica, its NATS connection included",
				replicas, origins, c.in/replicas/seconds, c.inBytes/replicas/seconds, c.out/replicas/seconds, c.outBytes/replicas/seconds,
				b.server.NumSubscriptions(), float64(after.HeapAlloc-before.HeapAlloc)/1024/replicas)
			if c.in < replicas*(seconds-1) || c.in > replicas*(seconds+1) {
				t.Errorf("%.0f messages", c.in)
			}
			if n := len(all[0].Replicas()); n != replicas {
				t.Errorf("sees %d replicas", n)
			}
		})
	}
}

// counts are those of a broker.
type counts struct{ in, inBytes, out, outBytes float64 }

func (b *broker) counts(t *testing.T) counts {
	t.Helper()
	v, err := b.server.Varz(&server.VarzOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return counts{float64(v.InMsgs), float64(v.InBytes), float64(v.OutMsgs), float64(v.OutBytes)}
}

func (c counts) less(o counts) counts {
	return counts{c.in - o.in, c.inBytes - o.inBytes, c.out - o.out, c.outBytes - o.outBytes}
}
