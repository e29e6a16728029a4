package cluster_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-sse/mcp-sse/cluster"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestSameName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var joined []*replica
		var refused []string
		for range 5 {
			wg.Go(func() {
				r, err := join(t, b, "one")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused = append(refused, err.Error())
				} else {
					joined = append(joined, r)
				}
			})
		}
		wg.Wait()
		if len(joined) != 1 || len(refused) != 4 || !strings.Contains(refused[0], "replica one (") {
			t.Fatalf("%d joined, others: %q", len(joined), refused)
		}
		if _, err := join(t, b, "one"); err == nil {
			t.Error("a later one has joined")
		}
		joined[0].Close()
		if _, err := join(t, b, "one"); err != nil {
			t.Errorf("after it has left: %v", err)
		}
	})
}

// Another cluster, and one with another key, are not seen on the same NATS.
func TestOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		one := joinAll(t, b, echo, "one")[0]
		cluster2, err := join(t, b, "one", func(o *cluster.Options) { o.Name = "other" })
		ssetest.Must(t, err)
		key2, err := join(t, b, "one", func(o *cluster.Options) { o.Key = bytes.Repeat([]byte("x"), 32) })
		ssetest.Must(t, err)
		for _, other := range []*replica{cluster2, key2} {
			other.serve(echo)
			ssetest.Want(t, "replicas that it sees", len(other.Replicas()), 1)
			began := time.Now()
			w, how := forward(t.Context(), other, one.ID()+".random.mac", "{}", false)
			if how == "" && w.Code != 503 || time.Since(began) > 10*time.Second {
				t.Errorf("a request for a replica that is not of the cluster: %q, got %d after %v", how, w.Code, time.Since(began))
			}
		}
		synctest.Wait()
		if len(one.served) > 0 || len(one.Replicas()) != 1 || !strings.Contains(one.logs.String(), "another key") {
			t.Errorf("it has served %q, and logged %s", one.served, one.logs)
		}
	})
}

func TestJoinFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		b.kill("one")
		for want, change := range map[string]func(*cluster.Options){
			"down: check its URL":                func(*cluster.Options) {},
			`the name of the replica is "a.b"`:   func(o *cluster.Options) { o.Replica = "a.b" },
			`the name of the cluster is "a>"`:    func(o *cluster.Options) { o.Name = "a>" },
			"32 bytes":                           func(o *cluster.Options) { o.Key = o.Key[1:] },
			"the URL of NATS is not valid":       func(o *cluster.Options) { o.URL = "nats://user:se cret@host" },
			"credentials of NATS: stat /nowhere": func(o *cluster.Options) { o.Credentials = "/nowhere" },
		} {
			_, err := join(t, b, "one", change)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "cret") {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := cluster.Join(ctx, cluster.Options{URL: "nats://h:1", Key: testKey, NATS: []nats.Option{nats.InProcessServer(line{b, "one"})}}); err == nil || time.Since(began) > time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

// Each replica is told how many connections the others have. Each connection counts once.
func TestUsage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, echo, "one", "two", "three")
		for i, r := range all {
			r.set(func() {
				r.usage = connstate.Usage{Connections: 10 * (i + 1), Origins: []connstate.OriginUsage{{Origin: 1 << 63, Open: i, Opened: 5 * i}, {Origin: 7, Opened: 3}}}
			})
		}
		opened := make(map[uint64]int)
		for range 10 {
			time.Sleep(time.Second)
			for _, o := range all[0].told().Origins {
				opened[o.Origin] += o.Opened
			}
		}
		if all[0].told().Connections != 50 || opened[7] < 48 || opened[7] > 60 || opened[1<<63] < 120 || opened[1<<63] > 150 {
			t.Errorf("got %+v, opened %v", all[0].told(), opened)
		}
		if r := all[2].Replicas(); r[0].Connections != 30 || r[1].Connections != 10 {
			t.Errorf("replicas: %+v", r)
		}
		all[0].set(func() { all[0].draining = true })
		b.kill("two")
		time.Sleep(10 * time.Second)
		ssetest.Want(t, "connections without two", all[0].told().Connections, 30)
		if r := all[2].Replicas(); !r[1].Draining || !r[2].Silent {
			t.Errorf("replicas: %+v", r)
		}
	})
}

// A detached server is gone; of two parts the one with the connection serves.
func TestParts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, echo, "one", "two")
		id := all[1].ID() + ".random.mac"
		second := &replica{t: t, Replica: all[1].Replica, has: map[string]bool{}}
		second.serve(echo)
		post := func() (got []int, how string) {
			_, how = forward(t.Context(), all[0], id, "{}", false)
			synctest.Wait()
			return []int{len(all[1].served), len(second.served)}, how
		}
		if got, how := post(); !reflect.DeepEqual(got, []int{0, 1}) || how != "" {
			t.Errorf("got %v %q", got, how)
		}
		all[1].set(func() { all[1].has[id] = true })
		if got, how := post(); !reflect.DeepEqual(got, []int{1, 1}) || how != "" {
			t.Errorf("got %v %q", got, how)
		}
	})
}

// A stream that another replica sends ends in order when this one no longer serves it: its
// client opens another one.
func TestDetach(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := joinAll(t, startBroker(t), stream, "one", "two")
		time.AfterFunc(time.Second, all[0].detach)
		w := httptest.NewRecorder()
		q, f := request(t.Context(), all[1].ID()+".random.mac", "")
		q.Method = http.MethodGet
		if !all[0].Forward(w, q, f) || w.Body.Len() == 0 || w.Body.Len() > len(events())/2 {
			t.Errorf("it ended after %q", w.Body)
		}
	})
}
