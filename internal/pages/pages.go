// Package pages reads the lists of MCP servers, which come in pages.
package pages

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Page is a page of a list.
type Page struct {
	// Cursor is that of the request, as JSON; empty for the first page.
	Cursor string
	Result json.RawMessage
	Last   bool
}

// Params returns the params of the request; nil for the first page.
func (p Page) Params() json.RawMessage {
	if p.Cursor == "" {
		return nil
	}
	return json.RawMessage(`{"cursor":` + p.Cursor + `}`)
}

// Endless is the error of a list that has too many pages, or whose pages come again. Its text says which.
type Endless string

func (e Endless) Error() string { return string(e) }

// Next returns the cursor of the page after a result, as JSON. It returns nil after the last page: servers
// write an empty cursor there, or null.
func Next(result json.RawMessage) json.RawMessage {
	cursor, _ := rawjson.Member(result, "nextCursor")
	if text, _ := rawjson.Text(cursor); text == "" {
		return nil
	}
	return cursor
}

// Reader takes the pages of a list one by one, where a goroutine that waits for them would be one too many. The caller
// sends a request with [Reader.Params], and gives the result to [Reader.Add], until that returns the last page or an
// error.
type Reader struct {
	most, taken int
	cursor      string
	seen        map[[sha256.Size]byte]bool // the cursors: they may be long
}

// NewReader returns a Reader that takes at most so many pages.
func NewReader(most int) *Reader {
	return &Reader{most: most, seen: make(map[[sha256.Size]byte]bool)}
}

// Params returns the params of the next request; nil for the first page.
func (r *Reader) Params() json.RawMessage { return Page{Cursor: r.cursor}.Params() }

// Add returns the page that has this result. The error is an [Endless], and says that there is no next page although
// the server names one. The page can be used even then.
func (r *Reader) Add(result json.RawMessage) (Page, error) {
	next := Next(result)
	page := Page{r.cursor, result, next == nil}
	if next == nil {
		return page, nil
	}
	r.taken++
	hash := sha256.Sum256(next)
	switch {
	case string(next) == r.cursor:
		return page, again("each page", next)
	case r.seen[hash]:
		return page, again("several pages", next)
	case r.taken == r.most:
		return page, Endless(fmt.Sprintf("there are over %d pages", r.most))
	}
	r.seen[hash] = true
	r.cursor = string(next)
	return page, nil
}

// Read returns the pages of a list, at most most. ask sends a request with params, nil for the first page, to
// the server, and returns the result. After an error, which is that of ask or an [Endless], there are no more pages.
func Read(most int, ask func(params json.RawMessage) (result json.RawMessage, err error)) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		r := NewReader(most)
		for {
			result, err := ask(r.Params())
			if err != nil {
				yield(Page{}, err)
				return
			}
			page, endless := r.Add(result)
			if !yield(page, nil) || page.Last {
				return
			}
			if endless != nil {
				yield(Page{}, endless)
				return
			}
		}
	}
}

func again(where string, cursor json.RawMessage) Endless {
	text, _ := rawjson.Text(cursor)
	return Endless(fmt.Sprintf("the server returns the same nextCursor for %s: %.40q", where, text))
}
