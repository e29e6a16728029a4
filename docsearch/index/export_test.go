package index

import (
	"context"
	"database/sql"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/postings"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

// BeginRemoval is RemoveFolder until it is interrupted.
func BeginRemoval(ctx context.Context, x *Index, folder string) error {
	_, err := x.hide(ctx, folder)
	return err
}

// RemoveNow is RemoveFolder that waits until the documents are gone.
func RemoveNow(ctx context.Context, x *Index, folder string) error {
	id, err := x.hide(ctx, folder)
	if err != nil {
		return err
	}
	return x.purge(ctx, id)
}

// WithMaxPages returns o with a bound on the pages of the file, as a full disk has.
func WithMaxPages(o Options, n int) Options {
	o.maxPages = n
	return o
}

// WithQueryTimeout returns o with a bound on how long a query waits for its vector.
func WithQueryTimeout(o Options, d time.Duration) Options {
	o.queryTimeout = d
	return o
}

// ParseCursor tells whether s is a cursor of a query.
func ParseCursor(s string, query uint64) error {
	c, err := parseCursor(s, query)
	if err == nil && s != "" && c.String() != s {
		panic("the cursor has two forms")
	}
	return err
}

// Cursor returns a cursor of a query.
func Cursor(query uint64, at int) string { return cursor{query: query, at: at, cap: 0.5}.String() }

// Terms returns the terms of a text.
func Terms(text string) (all []string) {
	words.Each(text, func(t words.Term) { all = append(all, string(t.Text)) })
	return all
}

// ForgetQueries empties the cache of the vectors of queries.
func ForgetQueries(x *Index) {
	x.vectors.mu.Lock()
	defer x.vectors.mu.Unlock()
	x.vectors.cache = nil
}

// StoredVectors returns the number of vectors, with those that no chunk has any more.
func StoredVectors(ctx context.Context, x *Index) (n int) {
	if err := x.db.Read.QueryRowContext(ctx, "SELECT count(*) FROM vectors").Scan(&n); err != nil {
		panic(err)
	}
	return n
}

// KeepsLists tells whether x has the lists of a word of all folders at hand.
func KeepsLists(ctx context.Context, x *Index, word string) (ok bool) {
	err := x.view(ctx, "look", func(tx *sql.Tx) error {
		s, err := x.newScope(ctx, tx, nil)
		if err == nil {
			_, ok = x.common.Get(s.generation, postings.Key{Word: word, Low: s.low, High: s.high})
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	return ok
}

// WaitForCalls waits for the calls of x, of which lists that are loaded ahead are one.
func WaitForCalls(x *Index) { x.calls.Wait() }
