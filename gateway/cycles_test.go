package gateway_test

import (
	"net/http"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// held counts the resources of a process.
type held struct {
	connections, goroutines, files int
	heap                           int64
}

func look(g *gateway.Gateway) held {
	h := held{len(g.Snapshot()), runtime.NumGoroutine(), 0, liveHeap()}
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

// P6: connections leave nothing behind, however they end, one after the other or hundreds
// at once.
func TestOpenAndCloseLeavesNothing(t *testing.T) {
	const workers = 100
	base, c, g := serve(t, upstream.Handle(echo), gateway.Settings{AnnounceDelay: -1})
	run := func(cycles int) {
		var wg, opened sync.WaitGroup
		opened.Add(workers)
		drop := make(chan struct{})
		for w := range workers {
			wg.Go(func() {
				for i := range cycles {
					if err := cycle(c, base+"/sse", w+i); err != nil {
						t.Error(err)
					}
				}
				s, err := ssetest.Dial(c, base+"/sse", nil)
				opened.Done()
				if err != nil {
					t.Error(err)
					return
				}
				<-drop
				s.Close()
			})
		}
		opened.Wait()
		if n := len(g.Snapshot()); n < workers {
			t.Errorf("%d connections are open, want %d", n, workers)
		}
		close(drop)
		wg.Wait()
		c.CloseIdleConnections()
	}
	settle := func(want held) (h held) {
		for range 3000 { // a minute at most
			h = look(g)
			if h.connections == 0 && h.goroutines <= want.goroutines && h.files <= want.files && h.heap <= want.heap+4<<20 {
				return h
			}
			time.Sleep(20 * time.Millisecond) // sockets close when their peers have noticed
		}
		return h
	}
	idle := look(g)
	run(1) // what is made once is there afterwards
	before := settle(held{goroutines: idle.goroutines + 2, files: idle.files + 2, heap: 1 << 40})
	run(5)
	after := settle(before)
	if after.connections > 0 || after.goroutines > before.goroutines || after.files > before.files || after.heap > before.heap+4<<20 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// cycle opens a stream, uses it in one of a few ways, and ends it.
func cycle(c *http.Client, at string, n int) error {
	s, err := ssetest.Dial(c, at, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	switch n % 4 {
	case 0: // gone at once
	case 1: // gone with a request under way
		return s.Send(request("1", "tools/list"))
	case 2: // gone when it was announced
		_, err = s.Until("auto-initialize")
	case 3: // gone after it was served
		_, err = s.Call(request("1", "tools/list"), "1")
	}
	return err
}
