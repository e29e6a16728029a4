package streamable_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// deafWriter is the response to a client that does not read.
type deafWriter struct {
	*httptest.ResponseRecorder
	hear chan struct{}
}

func (w deafWriter) Write(b []byte) (int, error) {
	<-w.hear
	return len(b), nil
}

// A client that reads none of its answers is closed once the process holds as many bytes as
// it may.
func TestUnreadAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 2 << 20
		large := append(append([]byte(`"`), bytes.Repeat([]byte("x"), size)...), '"')
		b := &backend{receive: func(c *connstate.Connection, m *jsonrpc.Message) {
			result, after := large, second // when all have asked
			if m.Method == "initialize" {
				result, after = []byte("{}"), 0
			}
			time.AfterFunc(after, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, result), "") })
		}}
		account := budget.New(4*size, nil)
		registry := connstate.NewRegistry(connstate.Limits{}, connstate.Options{Budget: account})
		h, err := streamable.New(b, registry, streamable.Options{})
		if err != nil {
			t.Fatal(err)
		}
		hear, session := make(chan struct{}), ""
		var posts sync.WaitGroup
		post := func(body string, w http.ResponseWriter) {
			r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
			r.Header.Set("Accept", acceptBoth)
			r.Header.Set("Content-Type", "application/json")
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			h.ServeHTTP(w, r)
		}
		first := httptest.NewRecorder()
		post(request("1", "initialize"), first)
		session = first.Header().Get("Mcp-Session-Id")
		c := b.last()
		for n := range 20 {
			posts.Go(func() { post(request(strconv.Itoa(n+2), "work"), deafWriter{httptest.NewRecorder(), hear}) })
		}
		time.Sleep(2 * second)
		if c.Reason() != connstate.ClosedSlow {
			t.Errorf("the connection is %v for %q, want closed for slow", c.State(), c.Reason())
		}
		close(hear)
		posts.Wait()
	})
}
