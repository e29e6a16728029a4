package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
)

// Query says what to search for. Text has words, which a document may contain, and
// phrases in double quotes, which it must contain. A document that matches Concepts
// and Terms has a word of a concept or one of the terms, as it is. Letter case,
// diacritics and punctuation make no difference.
type Query struct {
	Folders   []string // none for all
	Text      string
	Concepts  []string
	Terms     []string
	Limit     int     // 1-100; 0 is 10
	Threshold float64 // least relevance
	Content   bool    // return the text of the chunks
	Cursor    string  // NextCursor of the response before
}

const (
	defaultLimit = 10
	maxLimit     = 100
)

// Search returns the documents that match q, most relevant first, each with its best
// chunk. Without an Embedder, a relevance of 0.5 or more means that a document has all
// words of the query, and more means that they are frequent, stand in its title, or
// are close together. With one, the results of the words and those of the vectors are
// fused by reciprocal rank: 1 is for the first of both, and about 0.5 for the first of
// one alone. The relevance of a document is the same on whatever page it comes.
//
// It fails with ErrQuery, ErrCursor or ErrNoFolder. If the Embedder fails, the results
// are lexical, with a warning.
func (x *Index) Search(ctx context.Context, q Query) (*api.SearchResponse, error) {
	began := time.Now()
	s, err := x.newSearch(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := x.view(ctx, "search", func(tx *sql.Tx) error { return s.run(ctx, tx) }); err != nil {
		return nil, err
	}
	s.response.Performance.SearchTime = float64(time.Since(began).Microseconds()) / 1000
	return &s.response, nil
}

// search is one call of Search.
type search struct {
	index    *Index
	query    Query
	plan     *query.Plan
	vector   []float32 // of the query; nil: lexical
	from     cursor
	response api.SearchResponse
	paths    map[int64]string // of the folders that are searched

	unmatched int  // bytes of the texts that were read and lack a phrase
	long      bool // a document was too long to be searched whole for a phrase
}

func (x *Index) newSearch(ctx context.Context, q Query) (*search, error) {
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(max(q.Limit, 1), maxLimit)
	p := query.Parse(q.Text, q.Concepts, q.Terms)
	if p == nil {
		return nil, ErrQuery
	}
	s := &search{index: x, query: q, plan: p}
	s.response.Results = []api.Result{}
	s.response.Performance.ModelUsed = api.ModelLexical
	var err error
	if s.from, err = parseCursor(q.Cursor, hashOf(&q)); err != nil {
		return nil, err
	}
	if q.Cursor != "" && !s.from.hybrid {
		return s, nil
	}
	var warning string
	if s.vector, warning = x.queryVector(ctx, &q); s.vector != nil {
		s.response.Performance.ModelUsed = "hybrid:" + x.opts.Embedder.Model()
	}
	if s.vector == nil && s.from.hybrid {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("%w: %s", ErrCursorMode, warning))
	}
	s.from.hybrid = s.vector != nil
	s.warn(warning)
	return s, nil
}

// warn adds a warning, unless it is empty.
func (s *search) warn(warning string) {
	if warning != "" {
		s.response.Warnings = append(s.response.Warnings, warning)
	}
}

// end sets the cursor of the next page.
func (s *search) end(at int, top float64) {
	next := s.from
	next.at, next.cap = at, top
	s.response.NextCursor = next.String()
}

func (s *search) run(ctx context.Context, tx *sql.Tx) error {
	scope, err := s.index.newScope(ctx, tx, s.query.Folders)
	if err != nil {
		return err
	}
	s.paths = scope.paths
	r := s.index.rooms.Get().(*room)
	defer s.index.rooms.Put(r)
	found, err := s.index.candidates(ctx, tx, s.plan, scope, r)
	if err != nil {
		return err
	}
	s.response.Warnings = append(s.response.Warnings, s.plan.Warnings()...)
	if err := s.page(ctx, tx, found, scope); err != nil {
		return err
	}
	if s.long {
		s.warn(fmt.Sprintf("of a long document, only the %d MiB that have most of the words were searched for the phrase", maxUnmatched>>20))
	}
	return nil
}

func (s *search) page(ctx context.Context, tx *sql.Tx, found []candidate, scope scope) error {
	if s.vector == nil {
		return s.lexicalPage(ctx, tx, found)
	}
	near, err := s.index.nearest(ctx, tx, s.vector, scope)
	if err != nil {
		return err
	}
	return s.hybridPage(ctx, tx, found, near)
}

// newScope returns where to search: everywhere if no folder is named.
func (x *Index) newScope(ctx context.Context, tx *sql.Tx, folders []string) (s scope, err error) {
	if err := tx.StmtContext(ctx, x.readGeneration).QueryRowContext(ctx).Scan(&s.generation); err != nil {
		return s, err
	}
	wanted := map[int64]bool{}
	for _, path := range folders {
		id, err := folderID(ctx, tx, path)
		if err != nil {
			return s, err
		}
		wanted[id] = true
		s.low, s.high = id<<(folderShift+pieceShift), (id+1)<<(folderShift+pieceShift)-1
	}
	if len(wanted) != 1 {
		s.low, s.high = 0, 1<<62-1
	}
	return s, s.leaveOut(ctx, tx.StmtContext(ctx, x.readFolders), wanted)
}

// leaveOut notes the folders in the range that are not searched, and the others, whose
// pieces it counts.
func (s *scope) leaveOut(ctx context.Context, readFolders *sql.Stmt, wanted map[int64]bool) error {
	rows, err := readFolders.QueryContext(ctx)
	if err != nil {
		return err
	}
	defer rows.Close()
	s.without, s.paths = map[int64]bool{}, map[int64]string{}
	var others []int64
	for rows.Next() {
		var id, pieces int64
		var path string
		var going bool
		if err := rows.Scan(&id, &path, &pieces, &going); err != nil {
			return err
		}
		if going || len(wanted) > 0 && !wanted[id] {
			s.without[id] = true
		} else {
			s.pieces += int(pieces)
			others = append(others, id)
			s.paths[id] = path
		}
	}
	if len(s.without) > 0 {
		s.folders = others
	}
	return rows.Err()
}

// window is how many candidates are read and ranked again by what their text says.
const window = 20

// maxUnmatched bounds how many bytes of texts that lack a phrase a page reads, in about
// 10 ms. Only the search for a phrase of common words that hardly ever stand together
// reads so many.
const maxUnmatched = 1 << 20

// exhausted ends the page if it has read enough, after the first n of all candidates.
func (s *search) exhausted(n, all int, top float64) bool {
	if s.unmatched < maxUnmatched {
		return false
	}
	s.end(n, top)
	s.warn(fmt.Sprintf("only the first %d of %d documents with the words of the phrase were searched for it, those with most of them; a rarer word narrows the search", n, all))
	return true
}

// ranked is a candidate whose text was read.
type ranked struct {
	id        int64
	document  document
	place     query.Place
	relevance float64 // 0: it does not match
}

// rerank reads candidates and orders them by the relevance that they have by their text.
func (s *search) rerank(ctx context.Context, tx *sql.Tx, found []candidate) ([]ranked, error) {
	read, err := s.read(ctx, tx, found)
	if err != nil {
		return nil, err
	}
	all := make([]ranked, len(read))
	for i := range read {
		place, relevance, err := s.locate(ctx, tx, &read[i])
		if err != nil {
			return nil, err
		}
		all[i] = ranked{read[i].id, read[i].document, place, relevance}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.relevance, a.relevance), cmp.Compare(a.id, b.id))
	})
	return all, nil
}

// lexicalPage adds the results from the cursor on. It goes through windows of
// candidates at fixed places. No result is more relevant than one of a window before,
// so the threshold ends the search.
func (s *search) lexicalPage(ctx context.Context, tx *sql.Tx, found []candidate) error {
	at, top := s.from.at, s.from.cap
	for at < len(found) && top >= s.query.Threshold && top > 0 {
		if s.exhausted(at, len(found), top) {
			return nil
		}
		start := at / window * window
		end := min(start+window, len(found))
		all, err := s.rerank(ctx, tx, found[start:end])
		if err != nil {
			return err
		}
		least := top
		for i, r := range all {
			r.relevance = min(r.relevance, top)
			if r.relevance == 0 {
				break
			}
			least = min(least, r.relevance)
			if i < at-start || r.relevance < s.query.Threshold {
				continue
			}
			if len(s.response.Results) == s.query.Limit {
				s.end(start+i, top)
				return nil
			}
			s.add(&r)
		}
		at, top = end, least
	}
	return nil
}

// add adds a result.
func (s *search) add(r *ranked) {
	d := &r.document
	folder := s.paths[d.folder]
	c := r.place.Chunk
	result := api.Result{
		DocumentName: nameOf(d.title, d.path),
		DocumentID:   idOf(d.key),
		Folder:       folder,
		Path:         filepath.Join(folder, filepath.FromSlash(d.path)),
		Relevance:    r.relevance,
		Snippet:      s.plan.Snippet(r.place.Text, r.place.Matches),
		Location:     api.Location{Line: c.Line, EndLine: c.EndLine, Page: c.Page, Heading: c.Heading},
	}
	if s.query.Content {
		result.Content = r.place.Text
	}
	s.response.Results = append(s.response.Results, result)
}

// nameOf returns the title, or the file's name.
func nameOf(title, path string) string {
	if title != "" {
		return title
	}
	return filepath.Base(filepath.FromSlash(path))
}

// idOf returns the ID of a document as clients see it.
func idOf(key int64) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(key)))
}
