package sse_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
)

// A budget that others use up refuses new requests, large bodies and new connections,
// and lets the rest pass.
func TestBudgetIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := budget.New(1<<20, nil)
		f := newFixture(t, config{conn: connstate.Options{Budget: account}})
		g := f.open(t, "/sse")
		defer g.leave()
		synctest.Wait()
		account.Force(1<<20 - 4000)
		for name, tc := range map[string]struct {
			body   string
			status int
		}{
			"a long notification": {`{"jsonrpc":"2.0","method":"a","params":{"x":"` + strings.Repeat("x", 20_000) + `"}}`, 503},
			"a long response":     {`{"jsonrpc":"2.0","id":1,"result":{"x":"` + strings.Repeat("x", 20_000) + `"}}`, 503},
			"a short request":     {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, 202},
		} {
			if w := f.post(g, tc.body); w.Code != tc.status {
				t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, tc.status)
			}
		}
		account.Force(4000)
		for name, tc := range map[string]struct {
			body   string
			status int
		}{
			"a request":      {`{"jsonrpc":"2.0","id":2,"method":"ping"}`, 503},
			"a notification": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 202},
			"a response":     {`{"jsonrpc":"2.0","id":3,"result":{}}`, 202},
		} {
			w := f.post(g, tc.body)
			if w.Code != tc.status {
				t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, tc.status)
			}
			if w.Code != http.StatusServiceUnavailable {
				continue
			}
			var answer struct {
				Error struct {
					Data struct {
						Reason    string
						Retryable bool
					}
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Error.Data.Reason != "server_busy" || !answer.Error.Data.Retryable {
				t.Errorf("%s: got %s, %v, want server_busy", name, w.Body, err)
			}
			if after := w.Header().Get("Retry-After"); after != "1" {
				t.Errorf("%s: Retry-After %q", name, after)
			}
		}
		if w := ask(f, "", http.MethodGet, "/sse", nil); w.Code != http.StatusServiceUnavailable {
			t.Errorf("a new connection: got %d", w.Code)
		}
		account.Give(1 << 20)
		if w := f.post(g, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); w.Code != http.StatusAccepted {
			t.Errorf("with room again: got %d", w.Code)
		}
		g.leave()
		synctest.Wait()
		if account.Force(1<<20 - 1); account.Full() {
			t.Error("bytes are lost")
		}
	})
}

// post sends a body to the connection of a stream.
func (f *fixture) post(g *get, body string) *httptest.ResponseRecorder {
	return ask(f, "", http.MethodPost, "/sse/"+g.c.ID()+"/message", func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Body, r.ContentLength = http.NoBody, int64(len(body))
		if body != "" {
			r.Body = io.NopCloser(strings.NewReader(body))
		}
	})
}

// Many half POSTs of the greatest length hold what the client has sent of them, and
// for one connection at most 32 MiB.
func TestHalfBodiesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = 4 << 20
		f := newFixture(t, config{})
		g := f.open(t, "/sse")
		defer g.leave()
		synctest.Wait()
		var wg sync.WaitGroup
		statuses := make(chan int, 60)
		for i := range 60 {
			wg.Go(func() {
				w := ask(f, "", http.MethodPost, "/sse/"+g.c.ID()+"/message", func(r *http.Request) {
					r.Header.Set("Content-Type", "application/json")
					r.ContentLength = length
					r.Body = &halfBody{sent: length - 1 - i}
				})
				statuses <- w.Code
			})
			synctest.Wait()
			if held := f.count(t, "mcp_sse_held_bytes"); held > 32<<20 {
				t.Fatalf("%.0f bytes are held", held)
			}
		}
		wg.Wait()
		close(statuses)
		count := map[int]int{}
		for s := range statuses {
			count[s]++
		}
		if count[http.StatusBadRequest] != 8 || count[http.StatusServiceUnavailable] != 52 {
			t.Errorf("got %v, want 8 that end early and 52 refused", count)
		}
		if held := f.count(t, "mcp_sse_held_bytes"); held != 0 {
			t.Errorf("%.0f bytes are held after the end", held)
		}
	})
}

// halfBody sends a part of a body, and fails after ten seconds.
type halfBody struct{ sent int }

func (h *halfBody) Read(p []byte) (int, error) {
	n := min(len(p), h.sent)
	if n == 0 {
		time.Sleep(10 * time.Second)
		return 0, fmt.Errorf("i/o timeout")
	}
	h.sent -= n
	return n, nil
}

func (*halfBody) Close() error { return nil }
