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

	// leastSimilarity is the least similarity of a passage that counts as found by its meaning: any
	// two texts have something in common.
	leastSimilarity = 0.2
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

// queryVectors returns the vectors of a query by the models that made those of the folders;
// none, and perhaps a warning, if words alone count.
func (x *Index) queryVectors(ctx context.Context, text string, folders []*folder) (map[string][]float32, string) {
	if x.opts.Embedder == nil || text == "" {
		return nil, ""
	}
	found, asked := map[string][]float32{}, map[string]bool{}
	ready, empty := false, true
	for _, f := range folders {
		file, by := f.answering(x.opts.Embedder)
		empty = empty && f.record.Load().Chunks == 0
		if !asked[by.Model()] {
			asked[by.Model()] = true
			vector, err := x.queryVector(ctx, by, text)
			if ctx.Err() != nil {
				return nil, "" // the search fails anyway
			}
			if err != nil {
				return nil, by.Model() + " fails, results are by words alone: " + err.Error()
			}
			found[by.Model()] = shorten(vector, by, text)
		}
		ready = ready || file.Ready(len(found[by.Model()]))
	}
	if !ready && !empty {
		return nil, "no document has a vector yet: results are by words alone"
	}
	maps.DeleteFunc(found, func(_ string, v []float32) bool { return isZero(v) }) // the model does not understand it
	return found, ""
}

// queryVector returns the vector that an Embedder makes of a query.
func (x *Index) queryVector(ctx context.Context, by Embedder, text string) ([]float32, error) {
	if by == x.opts.Embedder {
		return x.askBriefly(ctx, text)
	}
	bounded, cancel := context.WithTimeout(ctx, x.opts.queryTimeout)
	defer cancel()
	all, err := by.Embed(bounded, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors.Unit(all[0]), nil
}

// shorten returns the vector of a query as long as the share of the query that the model knows,
// so that its similarities are that much less: the rest of the query is found by words alone.
func shorten(vector []float32, by Embedder, text string) []float32 {
	if l, ok := by.(local); ok {
		share := float32(l.Known(text))
		for i := range vector {
			vector[i] *= share
		}
	}
	return vector
}

func isZero(v []float32) bool {
	return !slices.ContainsFunc(v, func(f float32) bool { return f != 0 })
}

// floor returns the mean cosine of unrelated texts.
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
	file, vector := s.vectors(f)
	if vector == nil {
		return found, nil
	}
	for key, similarity := range file.Nearest(vector, maxNear) {
		if similarity < leastSimilarity {
			continue
		}
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

// vectors returns the vectors of a folder that answer, and the query's of the same model, nil
// if there is none.
func (s *searcher) vectors(f *folder) (*vectors.File, []float32) {
	if len(s.asked) == 0 {
		return nil, nil
	}
	file, by := f.answering(s.index.opts.Embedder)
	return file, s.asked[by.Model()]
}

// fuse adds what the passages mean to their relevance, and those that only mean the same.
// Both are taken for independent evidence: the figures of TestMeaning are better than those of
// reciprocal rank fusion, and a relevance goes from 0 to 1 for a threshold.
func (s *searcher) fuse(
	f *folder, r index.IndexReader, p *plan, all []candidate, near map[string]float64,
) ([]candidate, error) {
	file, vector := s.vectors(f)
	if vector == nil {
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
				similarity = file.Of(vectors.KeyOf(textOf(stored)), vector)
			}
		}
		if similarity >= leastSimilarity {
			c.meaning = similarity
		}
		c.relevance = 1 - (1-c.words)*(1-c.meaning)
	}
	if !p.strict() {
		for id, similarity := range near {
			all = append(all, candidate{folder: f, id: id, relevance: similarity, meaning: similarity})
		}
	}
	return all, nil
}

// EmbedsAtOnce reports whether vectors are made so fast that a folder can wait for them.
func (x *Index) EmbedsAtOnce() bool {
	_, ok := x.opts.Embedder.(local)
	return ok
}

// EmbedFolder is EmbedMissing for one folder.
func (x *Index) EmbedFolder(ctx context.Context, path string) error {
	f, err := x.folder(path)
	if err != nil || x.opts.Embedder == nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.ended, cancel)()
	return x.embedFolder(ctx, f)
}

// EmbedMissing gets vectors for the passages that have none. Passages of one folder with
// the same text have one vector. It returns nil when none is left, and an error when the
// Embedder fails; the vectors that it got until then stay. Without an Embedder it does
// nothing. Close interrupts it.
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
	f.meaning.embedding.Lock()
	defer f.meaning.embedding.Unlock()
	passages, err := f.texts() // some may be gone
	if err != nil {
		return err
	}
	var missing []vectors.Key
	for key := range passages {
		if !f.current().Has(key) {
			missing = append(missing, key)
		}
	}
	size := embedBatch
	if fast, ok := x.opts.Embedder.(local); ok {
		size = fast.Batch()
	}
	for batch := range slices.Chunk(missing, size) {
		if err := x.embedTexts(ctx, f, batch); err != nil {
			return err
		}
	}
	return f.call("remove vectors", func() error {
		if err := f.meaning.complete(); err != nil {
			return err
		}
		return f.current().Prune(passages)
	})
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
	if !f.current().Ready(len(found[0])) {
		floor, err = x.floor(ctx)
		if err != nil {
			return err
		}
	}
	return f.call("write vectors", func() error { return f.current().Add(keys, found, floor) })
}
