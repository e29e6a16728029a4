package index

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	index "github.com/blevesearch/bleve_index_api"
)

const (
	queryTimeout = 2 * time.Second  // of Options
	downTime     = 30 * time.Second // without another attempt after one failed
	maxCached    = 256              // vectors of queries
	maxNear      = 200              // texts of a folder that the vectors contribute to a search
	rated        = 100              // passages found by words whose meaning is compared too
	embedBatch   = 64               // texts
)

// unrelated are texts that have nothing in common. What a model makes of them tells which
// cosine means nothing.
var unrelated = []string{
	"The recipe needs two eggs, flour and a little butter.",
	"The court of appeal upheld the judgment on the contract.",
	"func main() { fmt.Println(len(os.Args)) }",
	"Migrating geese cross the Baltic Sea in October.",
	"The cellist tuned the lowest string before the concert.",
	"Quarterly revenue grew by four percent in Asia.",
	"Take one tablet twice a day, after a meal.",
	"xqj vwkzz pplfr",
}

// queries is what an Index knows of its Embedder by asking it for the vectors of queries.
type queries struct {
	mu      sync.Mutex
	cache   map[string][]float32
	failure string // of the last request, "" if it did not fail
	asked   time.Time
}

// note keeps how a request for vectors has ended.
func (q *queries) note(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked, q.failure = time.Now(), ""
	if err != nil {
		q.failure = err.Error()
	}
}

// EmbedderFailure says why the Embedder fails, or "". It asks it, unless that was done in
// the last half minute.
func (x *Index) EmbedderFailure(ctx context.Context) string {
	if x.opts.Embedder == nil {
		return ""
	}
	x.queries.mu.Lock()
	failure, known := x.queries.failure, time.Since(x.queries.asked) < downTime
	x.queries.mu.Unlock()
	if !known {
		if _, err := x.embedQuery(ctx, "test"); err != nil {
			return err.Error()
		}
		return ""
	}
	return failure
}

// queryVector returns the vector of a query; nil, and perhaps a warning, if there is none.
func (x *Index) queryVector(ctx context.Context, text string, folders []*folder) ([]float32, string) {
	if x.opts.Embedder == nil {
		return nil, ""
	}
	const failed = "the embeddings endpoint fails, results are by words alone: "
	q := &x.queries
	q.mu.Lock()
	vector, failure, down := q.cache[text], q.failure, time.Since(q.asked) < downTime
	q.mu.Unlock()
	if failure != "" && down {
		return nil, failed + failure
	}
	if !slices.ContainsFunc(folders, func(f *folder) bool { return f.vectors.ready(0) }) {
		return nil, "no document has a vector yet: results are by words alone"
	}
	if vector == nil {
		var err error
		if vector, err = x.embedQuery(ctx, text); err != nil {
			if ctx.Err() != nil {
				return nil, "" // the search fails anyway
			}
			x.log.Warn("query not embedded", "err", err)
			return nil, failed + err.Error()
		}
	}
	if !slices.ContainsFunc(folders, func(f *folder) bool { return f.vectors.ready(len(vector)) }) {
		return nil, "the vectors of the documents are of another model: results are by words alone until they are made anew"
	}
	return vector, ""
}

// embedQuery asks the Embedder. After a failure, queries leave it alone for a while.
func (x *Index) embedQuery(ctx context.Context, text string) ([]float32, error) {
	asked, cancel := context.WithTimeout(ctx, x.opts.queryTimeout)
	defer cancel()
	vectors, err := x.opts.Embedder.Embed(asked, []string{text})
	if err == nil && (len(vectors) != 1 || len(vectors[0]) == 0) {
		err = errors.New("the embedder returned no vector")
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // this says nothing about the Embedder
	}
	x.queries.note(err)
	if err != nil {
		return nil, err
	}
	q := &x.queries
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cache == nil || len(q.cache) >= maxCached {
		q.cache = map[string][]float32{}
	}
	q.cache[text] = unit(vectors[0])
	return q.cache[text], nil
}

// floor returns the cosine that texts have that have nothing in common.
func (x *Index) floor(ctx context.Context) (float64, error) {
	all, err := x.opts.Embedder.Embed(ctx, unrelated)
	if err != nil {
		return 0, fmt.Errorf("embed unrelated texts: %w", err)
	}
	sum, n := 0.0, 0
	for i := range all {
		for k := range all[:i] {
			sum += float64(dot(unit(all[i]), unit(all[k])))
			n++
		}
	}
	return min(max(sum/float64(max(n, 1)), 0), 0.95), nil
}

// near returns the passages of a folder that are near to the query, with their similarities.
func (s *searcher) near(ctx context.Context, f *folder) (map[string]float64, error) {
	if s.vector == nil {
		return nil, nil
	}
	found := map[string]float64{}
	return found, f.read(func(r index.IndexReader) error {
		for key, similarity := range f.vectors.nearest(s.vector, maxNear) {
			err := each(ctx, r, fieldHash, hex.EncodeToString(key[:]), func(id string) error {
				found[id] = similarity
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fuse adds what the passages mean to their relevance, and those that only mean the same.
// Both are taken for independent evidence.
func (s *searcher) fuse(f *folder, p *plan, all []candidate, near map[string]float64) ([]candidate, error) {
	if s.vector == nil {
		return all, nil
	}
	slices.SortFunc(all, byRelevance)
	matched := map[string]bool{}
	err := f.read(func(r index.IndexReader) error {
		for i := range all {
			c := &all[i]
			matched[c.id] = true
			similarity, ok := near[c.id]
			if !ok && i < rated {
				_, text, err := readPassage(r, c.id)
				if err != nil {
					return err
				}
				similarity = f.vectors.of(hashOf(text), s.vector)
			}
			c.relevance = 1 - (1-c.relevance)*(1-similarity)
		}
		return nil
	})
	if p.strict() {
		return all, err
	}
	for id, similarity := range near {
		if !matched[id] {
			all = append(all, candidate{f, id, similarity, nil})
		}
	}
	return all, err
}

// EmbedMissing gets vectors for the passages that have none. Passages of one folder with
// the same text have one vector. It returns nil when none is left, and an error when the
// Embedder fails; the vectors that it got until then stay. Without an Embedder it does
// nothing. One call runs at a time; Close interrupts it.
func (x *Index) EmbedMissing(ctx context.Context) error {
	if x.opts.Embedder == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.ended, cancel)()
	all, err := x.all()
	if err != nil {
		return err
	}
	for _, f := range all {
		if err := x.embedFolder(ctx, f); err != nil && !errors.Is(err, ErrClosed) {
			return err
		}
	}
	return nil
}

// embedFolder gets the missing vectors of a folder.
func (x *Index) embedFolder(ctx context.Context, f *folder) error {
	missing, live, err := f.unembedded()
	if err != nil {
		return err
	}
	without := 0
	for _, n := range missing {
		without += n
	}
	f.vectors.setMissing(without)
	keys := make([]hash, 0, len(missing))
	for key := range missing {
		keys = append(keys, key)
	}
	for batch := range slices.Chunk(keys, embedBatch) {
		if err := x.embedTexts(ctx, f, batch); err != nil {
			return err
		}
		for _, key := range batch {
			without -= missing[key]
		}
		f.vectors.setMissing(without)
	}
	return f.call("remove vectors", func() error {
		return f.vectors.prune(func(key hash) bool { return live[key] })
	})
}

// unembedded returns the texts without a vector, with the number of their passages, and all
// texts. Some may be gone.
func (f *folder) unembedded() (missing map[hash]int, live map[hash]bool, err error) {
	missing, live = map[hash]int{}, map[hash]bool{}
	return missing, live, f.call("find texts without vector", func() error {
		return f.read(func(r index.IndexReader) error {
			texts, err := r.FieldDict(fieldHash)
			if err != nil {
				return err
			}
			defer texts.Close()
			for {
				entry, err := texts.Next()
				if err != nil || entry == nil {
					return err
				}
				var key hash
				if _, err := hex.Decode(key[:], []byte(entry.Term)); err != nil {
					return err
				}
				if live[key] = true; !f.vectors.has(key) {
					missing[key] = int(entry.Count)
				}
			}
		})
	})
}

// embedTexts gets the vectors of texts, as far as these are still there.
func (x *Index) embedTexts(ctx context.Context, f *folder, keys []hash) error {
	var found []hash
	var texts []string
	err := f.call("read texts without vector", func() error {
		return f.read(func(r index.IndexReader) error {
			for _, key := range keys {
				some := ""
				err := each(ctx, r, fieldHash, hex.EncodeToString(key[:]), func(id string) (err error) {
					if some == "" {
						_, some, err = readPassage(r, id)
					}
					return err
				})
				if err != nil {
					return err
				}
				if some != "" {
					found, texts = append(found, key), append(texts, some)
				}
			}
			return nil
		})
	})
	if err != nil || len(texts) == 0 {
		return err
	}
	vectors, err := x.opts.Embedder.Embed(ctx, texts)
	if err == nil && (len(vectors) != len(texts) || len(vectors[0]) == 0) {
		err = fmt.Errorf("%d vectors for %d texts", len(vectors), len(texts))
	}
	if ctx.Err() == nil {
		x.queries.note(err)
	}
	if err != nil {
		return fmt.Errorf("embed passages: %w", err)
	}
	floor := 0.0
	if !f.vectors.ready(len(vectors[0])) {
		if floor, err = x.floor(ctx); err != nil {
			return err
		}
	}
	return f.call("write vectors", func() error { return f.vectors.add(found, vectors, floor) })
}
