package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// endpoint is an OpenAI-compatible endpoint whose vectors know two meanings: animals,
// and everything else.
func endpoint(t *testing.T, broken *atomic.Bool) string {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
			return
		}
		if got := r.Header.Get("Authorization"); got != "Bearer embeddings-key" {
			t.Errorf("Authorization = %q", got)
		}
		var request struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Model != "test-model" {
			t.Errorf("request: %+v, %v", request, err)
		}
		type embedding struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var data []embedding
		for n, text := range request.Input {
			vector := []float32{0.1, 1}
			if strings.Contains(text, "cheetah") || strings.Contains(text, "big cat") {
				vector = []float32{1, 0.1}
			}
			data = append(data, embedding{n, vector})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "model": "test-model"}) // the client has gone
	}))
	t.Cleanup(ts.Close)
	return ts.URL + "/v1"
}

// With an endpoint a search finds by meaning and says so. While the endpoint fails, it
// finds by words, says that too, and warns.
func TestSearchByMeaning(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	w := newWorld(t)
	w.env = append(w.env, "DOCSEARCH_EMBEDDINGS_KEY=embeddings-key")
	w.write("cheetah.txt", "The cheetah is fast.\n")
	s := w.agent("--embeddings-url", endpoint(t, &broken), "--embeddings-model", "test-model")
	var got struct {
		answer
		Performance struct {
			ModelUsed string `json:"modelUsed"`
		} `json:"performance"`
	}
	search := func(query string) {
		got.Results, got.Warnings, got.Performance.ModelUsed = nil, nil, ""
		if err := call(t.Context(), s, "search", map[string]any{"query": query}, &got); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("a search finds by meaning", func() bool {
		search("big cat")
		return len(got.Results) > 0 && strings.HasSuffix(got.Results[0].Path, "cheetah.txt") && got.Performance.ModelUsed == "hybrid:test-model"
	})
	broken.Store(true)
	search("the fast cheetah")
	if got.Performance.ModelUsed != "bm25" || len(got.Results) == 0 || !strings.HasSuffix(got.Results[0].Path, "cheetah.txt") || len(got.Warnings) == 0 {
		t.Errorf("while the endpoint fails: %+v, want cheetah.txt by bm25 with a warning", got)
	}
}
