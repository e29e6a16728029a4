package index_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/embed"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// judged is the content of testdata/judged.txt.
type judged struct {
	concepts  map[string]int // number of the group of a word
	documents []index.Change
	queries   []struct {
		text     string
		relevant []string // file names
	}
}

func readJudged(t *testing.T) *judged {
	t.Helper()
	f, err := os.Open("testdata/judged.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	j := &judged{concepts: map[string]int{}}
	section, groups := "", 0
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = line
		case section == "[synonyms]":
			for w := range strings.FieldsSeq(line) {
				j.concepts[w] = groups
			}
			groups++
		case section == "[documents]":
			id, body, _ := strings.Cut(line, ": ")
			j.documents = append(j.documents, text(id, body))
		default:
			query, ids, _ := strings.Cut(line, " => ")
			j.queries = append(j.queries, struct {
				text     string
				relevant []string
			}{query, strings.Fields(ids)})
		}
	}
	return j
}

// vector has one dimension for each group of synonyms, and one for all other words.
func (j *judged) vector(text string) []float32 {
	v := make([]float32, len(j.documents)/2+1)
	for _, w := range index.Terms(text) {
		if c, ok := j.concepts[w]; ok {
			v[c]++
		}
	}
	if slices.Max(v) == 0 {
		v[len(v)-1] = 1
	}
	return v
}

// server speaks the embeddings API.
func (j *judged) server(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		if e.down.Load() || json.NewDecoder(r.Body).Decode(&req) != nil || r.URL.Path != "/v1/embeddings" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var answer struct {
			Data []item `json:"data"`
		}
		for i, text := range req.Input {
			answer.Data = append(answer.Data, item{i, append(j.vector(text), make([]float32, e.more.Load())...)})
		}
		e.requests.Add(1)
		e.texts.Add(int64(len(req.Input)))
		slices.Reverse(answer.Data) // the order is free
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(e.Close)
	return e
}

type endpoint struct {
	*httptest.Server
	down            atomic.Bool
	more            atomic.Int64 // dimensions than at first
	requests, texts atomic.Int64
}

func (e *endpoint) client(t *testing.T, model string) *embed.Client {
	t.Helper()
	c, err := embed.New(embed.Options{URL: e.URL + "/v1", Model: model, Client: e.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func embedAll(t *testing.T, x *index.Index) {
	t.Helper()
	if err := x.EmbedMissing(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// score returns the mean reciprocal rank and the mean nDCG at 10 of a way to search.
func (j *judged) score(search func(query string) []string) (mrr, ndcg float64) {
	for _, q := range j.queries {
		gain, best := 0.0, 0.0
		for rank, name := range search(q.text) {
			if slices.Contains(q.relevant, name) {
				if gain == 0 {
					mrr += 1 / float64(rank+1)
				}
				gain += 1 / math.Log2(float64(rank+2))
			}
		}
		for rank := range q.relevant {
			best += 1 / math.Log2(float64(rank+2))
		}
		ndcg += gain / best
	}
	n := float64(len(j.queries))
	return mrr / n, ndcg / n
}

// byVector ranks all documents by cosine alone.
func (j *judged) byVector(query string) (names []string) {
	q := j.vector(query)
	type scored struct {
		name   string
		cosine float64
	}
	var all []scored
	for _, d := range j.documents {
		v := j.vector(d.Document.Text)
		var dot, a, b float64
		for i := range v {
			dot += float64(q[i]) * float64(v[i])
			a += float64(q[i]) * float64(q[i])
			b += float64(v[i]) * float64(v[i])
		}
		all = append(all, scored{d.Path, dot / math.Sqrt(a*b)})
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		return map[bool]int{true: -1, false: 1}[a.cosine > b.cosine] * map[bool]int{true: 0, false: 1}[a.cosine == b.cosine]
	})
	for _, s := range all[:10] {
		names = append(names, s.name)
	}
	return names
}

func TestHybridBeatsWordsAndVectorsAlone(t *testing.T) {
	j := readJudged(t)
	words := open(t, index.Options{})
	update(t, words, j.documents...)
	both := open(t, index.Options{Embedder: j.server(t).client(t, "concepts")})
	update(t, both, j.documents...)
	embedAll(t, both)
	by := func(x *index.Index) func(string) []string {
		return func(q string) []string { return find(t, x, index.Query{Text: q}) }
	}
	lexicalMRR, lexicalNDCG := j.score(by(words))
	vectorMRR, vectorNDCG := j.score(j.byVector)
	mrr, ndcg := j.score(by(both))
	t.Logf("MRR: words %.3f, vectors %.3f, hybrid %.3f; nDCG@10: %.3f, %.3f, %.3f",
		lexicalMRR, vectorMRR, mrr, lexicalNDCG, vectorNDCG, ndcg)
	if mrr < 1.2*max(lexicalMRR, vectorMRR) || ndcg < 1.1*max(lexicalNDCG, vectorNDCG) {
		t.Error("hybrid is not clearly better")
	}
}

func TestEmbeddingsAreReused(t *testing.T) {
	j := readJudged(t)
	e := j.server(t)
	path := filepath.Join(t.TempDir(), "index.db")
	x := openAt(t, path, index.Options{Embedder: e.client(t, "m")})
	update(t, x, j.documents...)
	embedAll(t, x)
	if got := e.texts.Load(); got != int64(len(j.documents)) {
		t.Errorf("%d texts, want %d", got, len(j.documents))
	}
	changed := text("car1", "Something else about a vehicle.")
	moved := j.documents[1]
	moved.Path = "moved"
	update(t, x, changed, moved, j.documents[2])
	embedAll(t, x)
	if got := e.texts.Load(); got != int64(len(j.documents))+1 {
		t.Errorf("%d texts after one change, want one more", got)
	}
	s, err := x.Stats(t.Context())
	if err != nil || s.Vectors != len(j.documents)+1 {
		t.Errorf("%+v, %v", s, err)
	}
	x.Close()
	x = openAt(t, path, index.Options{Embedder: e.client(t, "other")})
	if s, _ := x.Stats(t.Context()); s.Vectors != 0 {
		t.Errorf("%d vectors of the old model", s.Vectors)
	}
	embedAll(t, x)
	e.more.Store(1) // the model changes its mind
	update(t, x, text("new", "a new car"))
	embedAll(t, x)
	if s, _ := x.Stats(t.Context()); s.Vectors != len(j.documents)+2 {
		t.Errorf("%d vectors of another length", s.Vectors)
	}
	if got := find(t, x, index.Query{Text: "physician"}); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestFailingEndpointLeavesWords(t *testing.T) {
	j := readJudged(t)
	e := j.server(t)
	x := open(t, index.Options{Embedder: e.client(t, "m")})
	update(t, x, j.documents...)
	check := func(query, model string, warnings int) {
		t.Helper()
		r, err := x.Search(t.Context(), index.Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		if r.Performance.ModelUsed != model || len(r.Warnings) != warnings || len(r.Results) == 0 {
			t.Errorf("%s: %s, %v, %d results", query, r.Performance.ModelUsed, r.Warnings, len(r.Results))
		}
	}
	check("Oslo", "bm25", 1) // nothing is embedded yet
	embedAll(t, x)
	check("Oslo", "hybrid:m", 0)
	e.down.Store(true)
	check("Vienna", "bm25", 1)
	before := e.requests.Load()
	e.down.Store(false)
	check("Lima", "bm25", 1) // not asked again so soon
	if e.requests.Load() != before {
		t.Error("the endpoint was asked again")
	}
	check("Oslo", "hybrid:m", 0) // its vector is known
	e.down.Store(true)
	update(t, x, text("new", "new words"))
	if err := x.EmbedMissing(t.Context()); err == nil {
		t.Error("EmbedMissing hides the failure")
	}
}

func TestSlowEmbedderDelaysNoSearch(t *testing.T) {
	j := readJudged(t)
	slow := &stub{vector: j.vector}
	x := open(t, index.WithQueryTimeout(index.Options{Embedder: slow}, 20*time.Millisecond))
	update(t, x, j.documents...)
	embedAll(t, x)
	slow.hang.Store(true)
	for range 3 {
		began := time.Now()
		r, err := x.Search(t.Context(), index.Query{Text: "Oslo harbour"})
		if err != nil || len(r.Warnings) != 1 || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	}
	if n := slow.hangs.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

type stub struct {
	vector func(string) []float32
	hang   atomic.Bool
	hangs  atomic.Int64
}

func (s *stub) Model() string { return "stub" }

func (s *stub) Embed(ctx context.Context, texts []string) (all [][]float32, err error) {
	if s.hang.Load() {
		s.hangs.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, t := range texts {
		all = append(all, s.vector(t))
	}
	return all, nil
}

func TestHybridPagesHaveEachResultOnce(t *testing.T) {
	j := readJudged(t)
	x := open(t, index.Options{Embedder: j.server(t).client(t, "m")})
	update(t, x, j.documents...)
	embedAll(t, x)
	q := index.Query{Text: "vehicle Oslo a in", Limit: 100}
	want := pages(t, x, q)
	for _, limit := range []int{1, 3} {
		q.Limit = limit
		if got := pages(t, x, q); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("limit %d: got %v, want %v", limit, got, want)
		}
	}
	if got := find(t, x, index.Query{Text: `"car club" vehicle`}); fmt.Sprint(got) != "[car1]" {
		t.Errorf("phrase: got %v", got)
	}
}

func TestCloseInterruptsEmbedding(t *testing.T) {
	j := readJudged(t)
	slow := &stub{vector: j.vector}
	slow.hang.Store(true)
	x := open(t, index.Options{Embedder: slow})
	update(t, x, j.documents...)
	done := make(chan error)
	go func() { done <- x.EmbedMissing(context.WithoutCancel(t.Context())) }()
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, index.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
