package index

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	index "github.com/blevesearch/bleve_index_api"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/vectors"
)

const (
	queryTimeout = 2 * time.Second  // of Options
	textsTimeout = 20 * time.Minute // of a batch of texts, whose requests have their own
	downTime     = 30 * time.Second // without another attempt after one failed
	maxNear      = 200              // texts of a folder that the vectors contribute to a search
	rated        = 100              // passages found by words whose meaning is compared too
	embedBatch   = 32               // texts: some endpoints take no more
)

// unrelated are texts that have nothing in common. Their vectors tell which cosine means nothing
// for a model.
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

// asked is how the last request of the Embedder has ended.
type asked struct {
	mu  sync.Mutex
	err error
	at  time.Time
}

// failure returns why the last request failed, if it has and that is not long ago.
func (a *asked) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.at) < downTime {
		return a.err
	}
	return nil
}

// ask gets vectors of length 1 from the Embedder.
func (x *Index) ask(ctx context.Context, timeout time.Duration, texts []string) ([][]float32, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all, err := x.opts.Embedder.Embed(bounded, texts)
	if err == nil && (len(all) != len(texts) || len(all[0]) == 0) {
		err = fmt.Errorf("the embedder returned %d vectors for %d texts", len(all), len(texts))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // this says nothing about the Embedder
	}
	x.asked.mu.Lock()
	x.asked.err, x.asked.at = err, time.Now()
	x.asked.mu.Unlock()
	for i := range all {
		all[i] = vectors.Unit(all[i])
	}
	return all, err
}

// EmbedderFailure says why the Embedder fails now, or "".
func (x *Index) EmbedderFailure(ctx context.Context) string {
	if x.opts.Embedder == nil {
		return ""
	}
	if _, err := x.askBriefly(ctx, "test"); err != nil {
		return err.Error()
	}
	return ""
}

// askBriefly gets the vector of a text. It does not ask an Embedder that has just failed.
func (x *Index) askBriefly(ctx context.Context, text string) ([]float32, error) {
	if err := x.asked.failure(); err != nil {
		return nil, err
	}
	all, err := x.ask(ctx, x.opts.queryTimeout, []string{text})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// queryVector returns the vector of a query; nil, and perhaps a warning, if there is none.
func (x *Index) queryVector(ctx context.Context, text string, folders []*folder) ([]float32, string) {
	if x.opts.Embedder == nil {
		return nil, ""
	}
	vector, err := x.askBriefly(ctx, text)
	switch {
	case ctx.Err() != nil:
		return nil, "" // the search fails anyway
	case err != nil:
		return nil, "the embeddings endpoint fails, results are by words alone: " + err.Error()
	case !slices.ContainsFunc(folders, func(f *folder) bool { return f.vectors.Ready(len(vector)) }):
		return nil, "no document has a vector yet: results are by words alone"
	}
	return vector, ""
}

// floor returns the cosine that texts have that have nothing in common.
func (x *Index) floor(ctx context.Context) (float64, error) {
	all, err := x.ask(ctx, textsTimeout, unrelated)
	if err != nil {
		return 0, fmt.Errorf("embed unrelated texts: %w", err)
	}
	sum, n := 0.0, 0.0
	for i := range all {
		for k := range all[:i] {
			sum += float64(vectors.Dot(all[i], all[k]))
			n++
		}
	}
	return min(max(sum/n, 0), 0.95), nil
}

// near returns the passages of a folder that are near to the query, with their similarities.
func (s *searcher) near(ctx context.Context, f *folder, r index.IndexReader) (map[string]float64, error) {
	found := map[string]float64{}
	if s.vector == nil {
		return found, nil
	}
	for key, similarity := range f.vectors.Nearest(s.vector, maxNear) {
		err := each(ctx, r, fieldHash, key.String(), func(id string) error {
			found[id] = similarity
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// fuse adds what the passages mean to their relevance, and those that only mean the same.
// Both are taken for independent evidence.
func (s *searcher) fuse(
	f *folder, r index.IndexReader, p *plan, all []candidate, near map[string]float64,
) ([]candidate, error) {
	if s.vector == nil {
		return all, nil
	}
	slices.SortFunc(all, byRelevance)
	for i := range all {
		c := &all[i]
		similarity, ok := near[c.id]
		delete(near, c.id)
		if !ok && i < rated {
			stored, err := r.Document(c.id)
			if err != nil {
				return nil, err
			}
			if stored != nil { // else it has just been changed
				similarity = f.vectors.Of(vectors.KeyOf(textOf(stored)), s.vector)
			}
		}
		c.relevance = 1 - (1-c.relevance)*(1-similarity)
	}
	if !p.strict() {
		for id, similarity := range near {
			all = append(all, candidate{f, id, similarity, nil})
		}
	}
	return all, nil
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
	passages, err := f.texts() // some may be gone
	if err != nil {
		return err
	}
	var missing []vectors.Key
	for key := range passages {
		if !f.vectors.Has(key) {
			missing = append(missing, key)
		}
	}
	for batch := range slices.Chunk(missing, embedBatch) {
		if err := x.embedTexts(ctx, f, batch); err != nil {
			return err
		}
	}
	return f.call("remove vectors", func() error { return f.vectors.Prune(passages) })
}

// texts returns the number of passages with each text.
func (f *folder) texts() (passages map[vectors.Key]int, err error) {
	passages = map[vectors.Key]int{}
	return passages, f.read("list texts", func(r index.IndexReader) error {
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
			var key vectors.Key
			if _, err := hex.Decode(key[:], []byte(entry.Term)); err != nil {
				return err
			}
			passages[key] = int(entry.Count)
		}
	})
}

// embedTexts gets the vectors of texts, as far as these are still there.
func (x *Index) embedTexts(ctx context.Context, f *folder, keys []vectors.Key) error {
	texts := map[vectors.Key]string{}
	err := f.read("read texts without vector", func(r index.IndexReader) error {
		for _, key := range keys {
			err := each(ctx, r, fieldHash, key.String(), func(id string) error {
				stored, err := r.Document(id)
				if err == nil && stored != nil {
					texts[key] = textOf(stored)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(texts) == 0 {
		return err
	}
	keys = slices.Collect(maps.Keys(texts))
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = texts[key]
	}
	found, err := x.ask(ctx, textsTimeout, all)
	if err != nil {
		return fmt.Errorf("embed passages: %w", err)
	}
	floor := 0.0
	if !f.vectors.Ready(len(found[0])) {
		floor, err = x.floor(ctx)
		if err != nil {
			return err
		}
	}
	return f.call("write vectors", func() error { return f.vectors.Add(keys, found, floor) })
}
