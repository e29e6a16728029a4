package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
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
		var vectors [][]float32
		for _, text := range request.Input {
			vector := []float32{0.1, 1}
			if strings.Contains(text, "cheetah") || strings.Contains(text, "big cat") {
				vector = []float32{1, 0.1}
			}
			vectors = append(vectors, vector)
		}
		writeVectors(w, vectors)
	}))
	t.Cleanup(ts.Close)
	return ts.URL + "/v1"
}

// writeVectors answers as an endpoint does.
func writeVectors(w http.ResponseWriter, vectors [][]float32) {
	type embedding struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []embedding
	for n, vector := range vectors {
		data = append(data, embedding{n, vector})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "model": "test-model"}) // the client may have gone
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

// held is an endpoint that answers the first request for passages, and holds those after it until it is released. It
// counts how often it was asked for each text.
type held struct {
	mu       sync.Mutex
	asked    map[string]int
	requests int
	holds    chan struct{} // closed when a request is held
	released chan struct{}
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var vectors [][]float32
	isPassages := false
	h.mu.Lock()
	for _, text := range request.Input {
		vectors = append(vectors, []float32{1, float32(len(text) % 7)})
		if strings.Contains(text, "The herd grazes") {
			isPassages = true
			h.asked[text]++
		}
	}
	if isPassages {
		h.requests++
	}
	if isPassages && h.requests == 2 {
		close(h.holds)
	}
	isHeld := isPassages && h.requests > 1
	h.mu.Unlock()
	if isHeld {
		select {
		case <-h.released:
		case <-r.Context().Done():
			return
		}
	}
	writeVectors(w, vectors)
}

// A daemon that is killed while another model makes its vectors loses none that are made, and the model before answers
// until there are all.
func TestKilledWhileItEmbedsAnew(t *testing.T) {
	t.Parallel()
	const more = 60 // documents: an endpoint gets 32 passages at a time
	w := newWorld(t)
	for n := range more {
		w.write(fmt.Sprintf("more-%d.md", n), fmt.Sprintf("# More %d\n\nThe herd grazes, and %s rests in the shade.\n", n, word(n)))
	}
	query := word(3) + " government prime leaders"
	if model := w.searched(w.docs, query).Performance.ModelUsed; !strings.HasPrefix(model, "hybrid:glove-100d-") {
		t.Fatalf("at first: %s", model)
	}
	w.stop()

	h := &held{asked: map[string]int{}, holds: make(chan struct{}), released: make(chan struct{})}
	ts := httptest.NewServer(h)
	t.Cleanup(ts.Close)
	w.env = append(w.env, "DOCSEARCH_EMBEDDINGS_URL="+ts.URL+"/v1", "DOCSEARCH_EMBEDDINGS_MODEL=test-model")
	isFormer := func(when string) {
		t.Helper()
		found := w.searched(w.docs, query)
		if !strings.HasPrefix(found.Performance.ModelUsed, "hybrid:glove-100d-") || len(found.Results) == 0 {
			t.Errorf("%s: %+v", when, found)
		}
		if e := w.status().Embeddings; !strings.HasPrefix(e.Former, "glove-100d-") || e.Model != "test-model" {
			t.Errorf("%s: status says %+v", when, e)
		}
	}
	isFormer("while vectors are made")
	select {
	case <-h.holds:
	case <-time.After(patience):
		t.Fatal("the endpoint gets no second batch")
	}
	_ = syscall.Kill(w.daemon(), syscall.SIGKILL)
	isFormer("after the daemon was killed")
	close(h.released)
	w.eventually("the new model has made all vectors", func() bool {
		return w.searched(w.docs, query).Performance.ModelUsed == "hybrid:test-model" && w.status().Embeddings.Former == ""
	})
	if n := w.status().Embeddings.Chunks; n != documents+more {
		t.Errorf("%d passages have vectors", n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	times := map[int]int{}
	for _, n := range h.asked {
		times[n]++
	}
	if times[1] < 32 { // the first batch; those that were held are asked for again
		t.Errorf("texts by the times that they were asked for: %v", times)
	}
}
