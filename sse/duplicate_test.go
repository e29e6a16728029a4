package sse_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Two POSTs with one id get one kind of answer, also at the same moment: the second one 400.
func TestOneOfTwoRequestsWithOneIDIsRefused(t *testing.T) {
	f := newFixture(t, config{})
	may := make(chan struct{})
	f.backend.receive = func(c *connstate.Connection, m *jsonrpc.Message) {
		<-may
		_, _ = connstate.ForHandler{Connection: c}.BeginRequest(m)
	}
	srv := start(t, f)
	s := attach(t, f, srv.Client(), srv.URL)
	const message = `{"jsonrpc":"2.0","id":1,"method":"x"}`
	statuses := make(chan int, 3)
	var posts sync.WaitGroup
	for range 3 {
		posts.Go(func() {
			res, _ := post(t, s.client, s.url, message)
			statuses <- res.StatusCode
		})
	}
	ssetest.Want(t, "the second", <-statuses, http.StatusBadRequest)
	ssetest.Want(t, "the third", <-statuses, http.StatusBadRequest)
	close(may)
	ssetest.Want(t, "the first", <-statuses, http.StatusAccepted)
	posts.Wait()
	res, _ := post(t, s.client, s.url, message)
	ssetest.Want(t, "one after it", res.StatusCode, http.StatusBadRequest)
}
