//go:build all

package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// footprint is what a gateway holds.
type footprint struct {
	files, goroutines, children int
	memory                      int // of the heap, in MiB: the race detector multiplies the resident memory
}

func (p footprint) String() string {
	return fmt.Sprintf("%d descriptors, %d goroutines, %d children, %d MiB", p.files, p.goroutines, p.children, p.memory)
}

// footprint reads what the gateway holds now.
func (g *gateway) footprint() footprint {
	g.t.Helper()
	goroutines, ok := g.metric("go_goroutines")
	if !ok {
		g.t.Fatal("no metric go_goroutines")
	}
	heap, ok := g.metric("go_memstats_heap_inuse_bytes")
	if !ok {
		g.t.Fatal("no metric go_memstats_heap_inuse_bytes")
	}
	return footprint{files: openFiles(g.t, g), goroutines: int(goroutines), children: len(g.children()), memory: int(heap) >> 20}
}

// returnsTo waits until the gateway holds no more than before, and what may have
// been kept for later: idle connections, a shared session on its way, free memory.
func (g *gateway) returnsTo(before footprint, memory int) {
	g.t.Helper()
	const slack = 15
	var now footprint
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		now = g.footprint()
		if now.files <= before.files+slack && now.goroutines <= before.goroutines+slack &&
			now.children <= before.children && now.memory <= before.memory+memory {
			return
		}
	}
	g.t.Errorf("the gateway holds %v, before %v and at most %d MiB more", now, before, memory)
}

// watch has an innocent client call a tool all the while, and counts the gateway's
// children.
type watch struct {
	t        *testing.T
	g        *gateway
	innocent *stream
	bound    time.Duration // of an answer

	over chan struct{}
	wg   sync.WaitGroup
	// Read after end:
	calls    int
	children int // the most that the gateway had
}

// startWatch starts to watch a gateway. innocent has its session.
func startWatch(t *testing.T, g *gateway, innocent *stream, bound time.Duration) *watch {
	w := &watch{t: t, g: g, innocent: innocent, bound: bound, over: make(chan struct{})}
	w.wg.Go(w.call)    // ends with over
	w.wg.Go(w.measure) // the same
	return w
}

// end stops the watch. It expects the client to have been served all the while.
func (w *watch) end() {
	w.t.Helper()
	close(w.over)
	w.wg.Wait()
	if w.calls == 0 {
		w.t.Error("the innocent client has called nothing: the watch shows nothing")
	}
}

// call calls until the watch is over, or a call goes wrong.
func (w *watch) call() {
	for {
		if err := w.echo(fmt.Sprintf("innocent-%d", w.calls)); err != nil {
			w.t.Errorf("call %d of the innocent client: %v", w.calls, err)
			return
		}
		w.calls++
		select {
		case <-w.over:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// echo calls echo once and expects the text.
func (w *watch) echo(text string) error {
	id := strconv.Quote(text)
	status, answer, err := w.innocent.tryPost(w.innocent.endpoint,
		strings.NewReader(requestJSON(id, "tools/call", callParams("echo", fmt.Sprintf(`{"message":%q}`, text)))), "application/json")
	if err != nil || status != 202 {
		return fmt.Errorf("POST = %d %s, %v", status, answer, err)
	}
	e, err := w.innocent.find(answers("message", id), w.bound)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	var r response
	if err := json.Unmarshal([]byte(e.Data), &r); err != nil || r.Result == nil || len(r.Result.Content) != 1 || r.Result.Content[0].Text != text {
		return fmt.Errorf("the answer is %.300s", e.Data)
	}
	return nil
}

// measure counts the children.
func (w *watch) measure() {
	for {
		w.children = max(w.children, len(w.g.children()))
		select {
		case <-w.over:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}
