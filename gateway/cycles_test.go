package gateway_test

import (
	"net/http"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// held counts the resources of a process.
type held struct {
	goroutines, files int
	heap              int64
}

func look(t *testing.T) held {
	t.Helper()
	heap := liveHeap()
	h := held{goroutines: runtime.NumGoroutine(), heap: heap}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux
		h.files = len(entries)
	}
	return h
}

// liveHeap returns the bytes of live objects.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // a pool gives up its items at the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// heapSlack is how much the heap may grow.
const heapSlack = 4 << 20

// settled waits until the gateway has no connection, and returns the resources still
// held.
func settled(t *testing.T, g *gateway.Gateway, c *http.Client, want held) held {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		c.CloseIdleConnections()
		h := look(t)
		done := len(g.Snapshot()) == 0 && h.goroutines <= want.goroutines && h.files <= want.files && h.heap <= want.heap+heapSlack
		if done || time.Now().After(deadline) {
			return h
		}
		time.Sleep(20 * time.Millisecond) // sockets close when their peers have noticed
	}
}

func checkNothingLeft(t *testing.T, g *gateway.Gateway, before, after held) {
	t.Helper()
	if n := len(g.Snapshot()); n > 0 {
		t.Errorf("%d connections are left", n)
	}
	if after.goroutines > before.goroutines {
		t.Errorf("goroutines: %d before, %d after", before.goroutines, after.goroutines)
	}
	if after.files > before.files {
		t.Errorf("descriptors: %d before, %d after", before.files, after.files)
	}
	if after.heap > before.heap+heapSlack {
		t.Errorf("heap: %d KiB before, %d KiB after", before.heap>>10, after.heap>>10)
	}
	t.Logf("before %+v, after %+v", before, after)
}

// P6: connections leave nothing behind, however they end.
func TestOpenAndCloseLeavesNothing(t *testing.T) {
	cycles, workers := 10_000, 16
	if raceEnabled {
		cycles = 5_000
	}
	if testing.Short() {
		cycles = 200
	}
	base, c, g := serve(t, upstream.Handle(echo), gateway.Settings{AnnounceDelay: -1})
	run := func(cycles int) {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range cycles / workers {
					if err := cycle(c, base+"/sse", w+i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	run(10 * workers) // what is made once is there afterwards
	before := settled(t, g, c, held{goroutines: 1 << 20, files: 1 << 20, heap: 1 << 40})
	run(cycles)
	checkNothingLeft(t, g, before, settled(t, g, c, before))
}

// cycle opens a stream, uses it in one of a few ways, and ends it.
func cycle(c *http.Client, at string, n int) error {
	s, err := dial(c, at, nil)
	if err != nil {
		return err
	}
	defer s.close()
	switch n % 4 {
	case 0: // gone at once
	case 1: // gone with a request under way
		return s.send(request("1", "tools/list"))
	case 2: // gone when it was announced
		_, err = s.until(func(b block) bool { return b.Name == "mcp-response" })
	case 3: // gone after it was served
		_, err = s.call(request("1", "tools/list"), "1")
	}
	return err
}

func TestHundredsOfConnectionsDroppedAtOnce(t *testing.T) {
	const clients = 500
	base, c, g := serve(t, upstream.Handle(echo), gateway.Options{})
	if err := cycle(c, base+"/sse", 3); err != nil {
		t.Fatal(err)
	}
	before := settled(t, g, c, held{goroutines: 1 << 20, files: 1 << 20, heap: 1 << 40})
	streams := make([]*stream, clients)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			s, err := dial(c, base+"/sse", nil)
			if err != nil {
				t.Error(err)
				return
			}
			streams[i] = s
		})
	}
	wg.Wait()
	if n := len(g.Snapshot()); !t.Failed() && n != clients {
		t.Errorf("%d connections are open, want %d", n, clients)
	}
	for _, s := range streams {
		if s != nil {
			s.close()
		}
	}
	clear(streams)
	checkNothingLeft(t, g, before, settled(t, g, c, before))
}
