package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/postings"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

// Which lists are loaded ahead: those of words that at least aheadLeast of some
// aheadSample pieces have, most common first, up to aheadRows rows in half a second of
// processor time.
const (
	aheadPieces = 1000 // an index of fewer pieces has no long lists
	aheadSample = 64
	aheadLeast  = aheadSample / 8
	aheadRows   = 2 << 20
	aheadTries  = 3 // of a word whose lists are outdated as soon as they are read
)

// loadAhead loads the lists of common words in the background until Close, so that no
// search has to.
func (x *Index) loadAhead() {
	if x.enter() != nil {
		return
	}
	go func() {
		defer x.calls.Done()
		if !x.loading.TryLock() {
			return
		}
		defer x.loading.Unlock()
		if err := x.loadCommon(x.ended); err != nil && x.ended.Err() == nil {
			x.log.Warn("lists not loaded ahead", "err", err)
		}
	}()
}

func (x *Index) loadCommon(ctx context.Context) error {
	var common []string
	err := x.view(ctx, "find common words", func(tx *sql.Tx) (err error) {
		common, err = x.commonWords(ctx, tx)
		return err
	})
	rows := 0
	for _, word := range common {
		for try, kept := 0, false; err == nil && !kept && try < aheadTries && rows <= aheadRows; try++ {
			var n int
			n, kept, err = x.loadLists(ctx, word)
			rows += n
		}
	}
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// loadLists reads the lists of a word. It returns the number of their rows, and whether they
// are still current: a change may have been made meanwhile.
func (x *Index) loadLists(ctx context.Context, word string) (rows int, kept bool, err error) {
	var s scope
	err = x.view(ctx, "load lists", func(tx *sql.Tx) (err error) {
		if s, err = x.newScope(ctx, tx, nil); err != nil {
			return err
		}
		find := tx.StmtContext(ctx, x.findWord)
		defer find.Close()
		lists, err := x.postings(ctx, find, word, s)
		rows = lists.N
		return err
	})
	return rows, !x.common.Outdated(s.generation, postings.Key{Word: word, Low: s.low, High: s.high}), err
}

// commonWords returns words that many pieces have, by a sample of all documents.
func (x *Index) commonWords(ctx context.Context, tx *sql.Tx) ([]string, error) {
	var documents, count int
	err := tx.QueryRowContext(ctx, "SELECT coalesce(sum(documents), 0), coalesce(sum(pieces), 0) FROM folder WHERE going = 0").Scan(&documents, &count)
	if err != nil || count < aheadPieces {
		return nil, err
	}
	ids, err := queryAll[int64](ctx, tx, "SELECT id << ? FROM document WHERE pieces > 0 AND id % ? = 0 LIMIT ?",
		pieceShift, max(1, documents/aheadSample), 2*aheadSample)
	if err != nil {
		return nil, err
	}
	having := map[string]int{} // the number of pieces that have the word
	for some := range slices.Chunk(ids, readBatch) {
		texts, err := x.pieces(ctx, tx, some...)
		if err != nil {
			return nil, err
		}
		for _, p := range texts {
			for word := range distinctWords(p.text) {
				having[word]++
			}
		}
	}
	maps.DeleteFunc(having, func(_ string, n int) bool { return n < aheadLeast })
	return slices.SortedFunc(maps.Keys(having), func(a, b string) int {
		return cmp.Or(cmp.Compare(having[b], having[a]), cmp.Compare(a, b))
	}), nil
}

func distinctWords(text string) map[string]bool {
	all := map[string]bool{}
	words.Each(text, func(t words.Term) {
		if !all[string(t.Text)] {
			all[string(t.Text)] = true
		}
	})
	return all
}
