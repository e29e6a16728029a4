package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	setup  *setup // it is of
	pages  [merge.Kinds]func() paged
	search *searchable // nil: tools are listed
}

func newResult(merged *merge.Result, of *setup) *result {
	r := &result{Result: merged, setup: of}
	for kind := range merge.Kinds {
		r.pages[kind] = sync.OnceValue(func() paged { return newPaged(kind, r.Lists[kind]) })
	}
	if of.opts.Search {
		r.search = newSearchable(r)
		r.pages[merge.Tools] = sync.OnceValue(func() paged {
			return paged{pages: []json.RawMessage{listOfSearch(r, nil)}}
		})
	}
	return r
}

// paged is a list as clients read it.
type paged struct {
	pages []json.RawMessage // one at least
	mark  string            // of the list, in its cursors; no other list has it. Empty: there is one page
}

// newPaged cuts a list into pages. Each names the next one by the cursor MARK.INDEX.
func newPaged(kind merge.Kind, list []merge.Entry) (p paged) {
	parts := cut(list)
	if len(parts) > 1 {
		p.mark = markOf(list)
	}
	for at, part := range parts {
		page := json.RawMessage(`{"` + kind.Member() + `":[`)
		for i, e := range part {
			if i > 0 {
				page = append(page, ',')
			}
			page = append(page, e.Raw...)
		}
		page = append(page, ']')
		if next := at + 1; next < len(parts) {
			page = append(page, `,"nextCursor":"`+p.mark+"."+strconv.Itoa(next)+`"`...)
		}
		p.pages = append(p.pages, append(page, '}'))
	}
	return p
}

// cut returns the entries of each page of a list.
func cut(list []merge.Entry) (parts [][]merge.Entry) {
	for {
		taken, size := 0, 0
		for taken < len(list) && (taken == 0 || size+len(list[taken].Raw) <= maxPage) {
			size += len(list[taken].Raw) + len(",")
			taken++
		}
		parts = append(parts, list[:taken])
		list = list[taken:]
		if len(list) == 0 {
			return parts
		}
	}
}

// markOf returns a text that no other list has. Lists with the same entries of the same members are one, whatever rules
// and connections they come from.
func markOf(list []merge.Entry) string {
	sum := sha256.New()
	for _, e := range list {
		fmt.Fprintf(sum, "%q %q %d ", e.Member, e.Own, len(e.Raw))
		sum.Write(e.Raw)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// page returns the page that a cursor names; nil if that is a cursor of another list.
func (p *paged) page(cursor string) json.RawMessage {
	mark, number, _ := strings.Cut(cursor, ".")
	index, err := strconv.Atoi(number)
	if err != nil || p.mark == "" || mark != p.mark || index < 1 || index >= len(p.pages) {
		return nil
	}
	return p.pages[index]
}
