package sse_test

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// While requests of a client are unanswered, the stream lets those run that answer them
// before it writes. On one processor, where nothing else would, answers that are ready
// together share writes.
func TestAnswersThatAreReadyTogetherShareWrites(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const answers, rounds = 16, 20
	f := newFixture(t, config{})
	s := &sink{header: http.Header{}, flushed: make(chan struct{}, answers*rounds+10)}
	c := benchStream(t, f, s)
	<-s.flushed // the head
	for range rounds {
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range answers {
			id := jsonrpc.ID(strconv.Itoa(i))
			r, err := c.Begin(&jsonrpc.Message{ID: id, Method: "tools/call"})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				<-start
				r.Answer(benchEvent, "")
			})
		}
		for range answers {
			runtime.Gosched() // until all wait for start
		}
		close(start)
		wg.Wait()
		for c.Unwritten() > 0 {
			runtime.Gosched()
		}
	}
	if writes := len(s.flushed); writes > answers*rounds/2 {
		t.Errorf("%d answers in %d writes, want at most half as many", answers*rounds, writes)
	} else {
		t.Logf("%d answers in %d writes", answers*rounds, writes)
	}
}
