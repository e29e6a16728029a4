package compose

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/merge"
)

// maxPage bounds a page of a list, in bytes. A larger entry is a page alone.
const maxPage = 1 << 20

// result is a merge.Result as clients get it. It is immutable; sessions with the same lists share it.
type result struct {
	*merge.Result
	setup      *setup // it is of
	generation int64  // no two results of a view have the same
	pages      [merge.Kinds]func() []json.RawMessage
	search     *searchable // nil: tools are listed
}

func newResult(merged *merge.Result, of *setup, generation int64) *result {
	r := &result{Result: merged, setup: of, generation: generation}
	for kind := range merge.Kinds {
		r.pages[kind] = sync.OnceValue(func() []json.RawMessage { return r.split(kind) })
	}
	if of.opts.Search {
		r.search = newSearchable(r)
		r.pages[merge.Tools] = sync.OnceValue(func() []json.RawMessage {
			return []json.RawMessage{listOfSearch(r, nil)}
		})
	}
	return r
}

// split returns the pages of a list; one at least. Each names the next one by GENERATION.INDEX.
func (r *result) split(kind merge.Kind) (pages []json.RawMessage) {
	rest := r.Lists[kind]
	for {
		taken, size := 0, 0
		for taken < len(rest) && (taken == 0 || size+len(rest[taken].Raw) <= maxPage) {
			size += len(rest[taken].Raw) + len(",")
			taken++
		}
		page := make(json.RawMessage, 0, size+100) // the names and the cursor need less
		page = append(page, `{"`+kind.Member()+`":[`...)
		for i, e := range rest[:taken] {
			if i > 0 {
				page = append(page, ',')
			}
			page = append(page, e.Raw...)
		}
		rest = rest[taken:]
		if len(rest) == 0 {
			return append(pages, append(page, `]}`...))
		}
		next := strconv.FormatInt(r.generation, 10) + "." + strconv.Itoa(len(pages)+1)
		pages = append(pages, append(page, `],"nextCursor":"`+next+`"}`...))
	}
}

// parseCursor returns the generation and the index of a cursor that split has made.
func parseCursor(cursor string) (generation int64, index int, ok bool) {
	first, second, _ := strings.Cut(cursor, ".")
	generation, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	index, err = strconv.Atoi(second)
	return generation, index, err == nil && index > 0
}
