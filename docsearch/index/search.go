package index

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/highlight"
	"github.com/blevesearch/bleve/v2/search/highlight/fragmenter/simple"
	highlighter "github.com/blevesearch/bleve/v2/search/highlight/highlighter/simple"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

const (
	defaultLimit    = 10
	defaultPassages = 5
	candidates      = 400 // passages of a folder that are rated: no search finds more
	snippetRunes    = 240
)

// Search returns the documents that match q, most relevant first, each with its best
// passages. A relevance goes from 0 to 1 and depends on the document and the query
// alone: words and meaning each give one, and what both find gets more. It fails with
// ErrQuery, ErrCursor or ErrNoFolder. If the Embedder fails, words alone count, with a
// warning.
func (x *Index) Search(ctx context.Context, q Query) (*api.SearchResponse, error) {
	began := time.Now()
	q.Limit, q.Passages = cmp.Or(q.Limit, defaultLimit), cmp.Or(q.Passages, defaultPassages)
	from, err := parseCursor(q)
	if err != nil {
		return nil, err
	}
	p, err := x.plan(&q)
	if err != nil {
		return nil, err
	}
	folders, err := x.all(q.Folders...)
	if err != nil {
		return nil, err
	}
	s := &searcher{index: x, query: q, folders: folders}
	s.response.Results = []api.Result{}
	s.response.Performance.ModelUsed = api.ModelLexical
	s.embed(ctx, p.asks)
	if err := s.run(ctx, p, from); err != nil {
		return nil, err
	}
	s.response.Performance.SearchTime = float64(time.Since(began).Microseconds()) / 1000
	return &s.response, nil
}

// searcher is one call of Search.
type searcher struct {
	index    *Index
	query    Query
	folders  []*folder
	asked    map[string][]float32 // the vectors of the query by model; none: words alone
	response api.SearchResponse
}

// embed sets the vector of the query.
func (s *searcher) embed(ctx context.Context, text string) {
	found, warning := s.index.queryVectors(ctx, text, s.folders)
	s.asked = found
	if len(found) > 0 {
		s.response.Performance.ModelUsed = "hybrid:" + strings.Join(slices.Sorted(maps.Keys(found)), ",")
	}
	if warning != "" {
		s.response.Warnings = append(s.response.Warnings, warning)
	}
}

// candidate is a passage that may be a result.
type candidate struct {
	folder    *folder
	id        string
	relevance float64
	words     float64               // relevance by words alone
	meaning   float64               // and by meaning
	exact     bool                  // has one of the exact terms or phrases of the query
	hit       *search.DocumentMatch // nil: only its meaning matches
}

// foundBy says why a candidate was found.
func (c *candidate) foundBy() api.FoundBy {
	switch {
	case c.meaning == 0:
		return api.ByWords
	case c.words == 0:
		return api.ByMeaning
	}
	return api.ByBoth
}

func (c *candidate) document() string {
	id, _, _ := strings.Cut(c.id, "/")
	return id
}

// byRelevance orders candidates: those with an exact term or phrase of the query first, and
// those of one document that are as relevant by their place.
func byRelevance(a, b candidate) int {
	if a.exact != b.exact {
		if a.exact {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.relevance, a.relevance), cmp.Compare(a.document(), b.document()),
		cmp.Compare(len(a.id), len(b.id)), cmp.Compare(a.id, b.id))
}

// run adds the results of a plan from a place on.
func (s *searcher) run(ctx context.Context, p *plan, from int) error {
	if err := p.weigh(ctx, s.folders); err != nil {
		return err
	}
	var all []candidate
	for _, f := range s.folders {
		err := f.read("search", func(r index.IndexReader) error {
			found, err := s.candidates(ctx, p, f, r)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(all, byRelevance)
	var order []string
	documents := map[string][]candidate{}
	for _, c := range all {
		if c.relevance <= 0 || c.relevance < s.query.Threshold {
			continue // with an exact term, it comes before others that are more relevant
		}
		id := c.document()
		if len(documents[id]) == 0 {
			order = append(order, id)
		}
		if len(documents[id]) < s.query.Passages {
			documents[id] = append(documents[id], c)
		}
	}
	return s.page(order, documents, from)
}

// page adds a page of documents.
func (s *searcher) page(order []string, documents map[string][]candidate, from int) error {
	for at := min(from, len(order)); at < len(order); at++ {
		if len(s.response.Results) == s.query.Limit {
			s.response.NextCursor = cursor(s.query, at)
			return nil
		}
		passages := documents[order[at]]
		err := passages[0].folder.read("search", func(r index.IndexReader) error { return s.add(r, passages) })
		if err != nil {
			return err
		}
	}
	return nil
}

// candidates returns the passages of a folder that match, with their relevance.
func (s *searcher) candidates(ctx context.Context, p *plan, f *folder, r index.IndexReader) ([]candidate, error) {
	near, err := s.near(ctx, f, r)
	if err != nil {
		return nil, err
	}
	found, err := f.words.SearchInContext(ctx, bleve.NewSearchRequestOptions(p.query(), candidates, 0, false))
	if err != nil {
		return nil, err
	}
	ids := slices.Collect(maps.Keys(near))
	for _, hit := range found.Hits {
		if _, ok := near[hit.ID]; !ok {
			ids = append(ids, hit.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	// A second search finds where the words are: of all passages that would take long.
	within := bleve.NewBooleanQuery()
	within.AddMust(p.query())
	within.AddFilter(query.NewDocIDQuery(ids))
	located := bleve.NewSearchRequestOptions(within, len(ids), 0, false)
	located.IncludeLocations = true
	found, err = f.words.SearchInContext(ctx, located)
	if err != nil {
		return nil, err
	}
	all := make([]candidate, 0, len(ids))
	for _, hit := range found.Hits {
		words := p.relevance(hit)
		all = append(all, candidate{
			folder: f, id: hit.ID, relevance: words, words: words, exact: p.hasExact(hit), hit: hit,
		})
	}
	return s.fuse(f, r, p, all, near)
}

// add adds a document with its passages.
func (s *searcher) add(r index.IndexReader, passages []candidate) error {
	id := passages[0].document()
	d, err := readFile(r, id)
	if err != nil || d == nil { // it has just been deleted
		return err
	}
	summary := passages[0].folder.summary(d)
	result := api.Result{DocumentName: summary.Name, DocumentID: id, Folder: summary.Folder, Path: summary.Path}
	for _, c := range passages {
		found, err := s.passage(r, c)
		if err != nil {
			return err
		}
		switch {
		case found == nil: // it has just been changed
		case result.Snippet == "":
			result.Passage = *found
		default:
			result.MorePassages = append(result.MorePassages, *found)
		}
	}
	if result.Snippet != "" {
		s.response.Results = append(s.response.Results, result)
	}
	return nil
}

// passage returns a candidate for clients, nil if it is not in the index any more.
func (s *searcher) passage(r index.IndexReader, c candidate) (*api.Passage, error) {
	stored, err := r.Document(c.id)
	if err != nil || stored == nil {
		return nil, err
	}
	text := textOf(stored)
	found := &api.Passage{Relevance: c.relevance, FoundBy: c.foundBy(), WordScore: c.words, MeaningScore: c.meaning}
	found.Snippet, found.Highlights = unmark(snippet(c.hit, stored, text))
	if err := json.Unmarshal(valueOf(stored, fieldPlace), &found.Location); err != nil {
		return nil, err
	}
	if s.query.Content {
		found.Content = text
	}
	return found, nil
}

// snippet returns the best part of a passage, with marks around the words that match.
func snippet(hit *search.DocumentMatch, stored index.Document, text string) string {
	best := ""
	if hit != nil && len(hit.Locations[fieldText]) > 0 {
		h := highlighter.NewHighlighter(simple.NewFragmenter(snippetRunes), marks{}, "…")
		best = h.BestFragmentInField(hit, stored, fieldText)
	}
	if strings.TrimSpace(best) == "" {
		best = text
		if r := []rune(text); len(r) > snippetRunes {
			best = string(r[:snippetRunes]) + "…"
		}
	}
	return best
}

// The marks around words in a snippet, until unmark takes them out. No text of a document
// has these private-use characters: package extract removes them.
const (
	markStart = '\ue000'
	markEnd   = '\ue001'
)

// unmark takes the marks out of a snippet, and returns where they were.
func unmark(marked string) (snippet string, highlights []api.Highlight) {
	var b strings.Builder
	at := 0 // characters of the snippet
	for _, r := range marked {
		switch {
		case r == markStart:
			highlights = append(highlights, api.Highlight{Start: at, End: at})
		case r == markEnd && len(highlights) > 0:
			highlights[len(highlights)-1].End = at
		case r != markEnd:
			b.WriteRune(r)
			at++
		}
	}
	return b.String(), highlights
}

// marks puts marks around words. It implements highlight.FragmentFormatter.
type marks struct{}

func (marks) Format(f *highlight.Fragment, words highlight.TermLocations) string {
	var b strings.Builder
	at := f.Start
	for _, w := range words {
		if w == nil || w.Start < at || w.End > f.End {
			continue
		}
		b.Write(f.Orig[at:w.Start])
		b.WriteRune(markStart)
		b.Write(f.Orig[w.Start:w.End])
		b.WriteRune(markEnd)
		at = w.End
	}
	b.Write(f.Orig[at:f.End])
	return b.String()
}

// cursor names a place in the results of a query. The limit may change from page to page.
func cursor(q Query, at int) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q %g", q.Folders, q.Text, q.Concepts, q.Terms, q.Threshold)
	return fmt.Sprintf("%x-%d", h.Sum64(), at)
}

// parseCursor returns the place that the cursor of q names, 0 without one.
func parseCursor(q Query) (at int, err error) {
	if q.Cursor == "" {
		return 0, nil
	}
	_, place, _ := strings.Cut(q.Cursor, "-")
	at, err = strconv.Atoi(place)
	if err != nil || at < 1 || q.Cursor != cursor(q, at) {
		return 0, ErrCursor
	}
	return at, nil
}
