package client_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// slowDaemon is a daemon in the process of its test, which takes its time.
type slowDaemon struct{ health, search time.Duration }

func (d slowDaemon) RoundTrip(r *http.Request) (*http.Response, error) {
	w, pause := httptest.NewRecorder(), d.search
	if r.URL.Path == "/health" {
		pause = d.health
		reply(w, 200, api.Health{PID: os.Getpid()})
	} else {
		reply(w, 200, api.SearchResponse{Results: []api.Result{{DocumentName: "q", DocumentID: "7"}}})
	}
	select {
	case <-time.After(pause):
		return w.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func TestSlowAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		daemon slowDaemon
		after  time.Duration
		down   string // "" for an answer
	}{
		"healthy":  {slowDaemon{time.Second, 59 * time.Second}, 60 * time.Second, ""}, // with the look for it
		"too slow": {slowDaemon{0, 61 * time.Second}, 60 * time.Second, "healthy"},
		"hangs":    {slowDaemon{3 * time.Second, 0}, 2 * time.Second, "not even to GET /health"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lock, err := discovery.Acquire(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lock.Release() }()
			if err := lock.Publish(discovery.NewRecord("127.0.0.1:1", "")); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				c, err := client.New(client.Options{StateDir: dir, NoStart: true})
				if err != nil {
					t.Fatal(err)
				}
				c.SetTransport(tt.daemon)
				began := time.Now()
				if _, err = ask(t.Context(), c, "q"); tt.down != "" {
					wantDown(t, err, tt.down)
				} else if err != nil {
					t.Error(err)
				}
				if got := time.Since(began); got != tt.after {
					t.Errorf("after %v, want %v", got, tt.after)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
