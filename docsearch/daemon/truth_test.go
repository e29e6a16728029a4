package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// endpoint is an index.Embedder that may fail.
type endpoint struct{ fails atomic.Bool }

func (*endpoint) Model() string { return "model-1" }

func (e *endpoint) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if e.fails.Load() {
		return nil, errors.New("connection refused")
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{1, float32(len(text))}
	}
	return vectors, nil
}

// The daemon says at once that the endpoint of embeddings fails, and why, also when all
// passages have their vectors.
func TestFailingEmbeddingsAreTold(t *testing.T) {
	t.Parallel()
	e := &endpoint{}
	r := start(t, daemon.Options{Embedder: e})
	info := func() (info api.ServerInfo) {
		r.get("GET", "/api/v1/server/info", nil, &info)
		return info
	}
	r.eventually("all passages have vectors", func() bool {
		now := info()
		return now.Status == api.StatusHealthy && now.Documents == 2 && now.Embeddings.Chunks == now.Chunks
	})
	e.fails.Store(true)
	if now := info(); now.Status != api.StatusDegraded || now.Embeddings.LastFailed != "connection refused" || !strings.Contains(fmt.Sprint(now.Warnings), "by words alone: connection refused") {
		t.Errorf("info: %+v, %+v", now, now.Embeddings)
	}
	var found api.SearchResponse
	r.get("POST", "/api/v1/search", api.SearchRequest{Query: "goat"}, &found)
	if found.Performance.ModelUsed != api.ModelLexical || !strings.Contains(fmt.Sprint(found.Warnings), "connection refused") {
		t.Errorf("search: %+v", found)
	}
}

// A search that fails is a warning for as long as the daemon runs.
func TestFailedSearchIsTold(t *testing.T) {
	t.Parallel()
	r := start(t, daemon.Options{})
	r.indexed()
	err := filepath.WalkDir(filepath.Join(r.state, "index"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".zap") {
			err = os.Truncate(path, 0)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.eventually("a search fails", func() bool {
		response, _ := r.request("POST", "/api/v1/search", api.SearchRequest{Query: "goat"})
		return response.StatusCode == http.StatusServiceUnavailable
	})
	var health api.Health
	r.eventually("the daemon serves an index that was made anew", func() bool {
		record, _ := discovery.Read(r.state)
		r.base = "http://" + record.Address
		response, err := r.client.Get(r.base + "/health")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return json.NewDecoder(response.Body).Decode(&health) == nil && strings.Contains(fmt.Sprint(health.Warnings), "made anew")
	})
	if !strings.Contains(fmt.Sprint(health.Warnings), "failed searches since the daemon started: 1") {
		t.Errorf("health: %+v", health)
	}
	r.finds("goat", "hill.txt")
}
