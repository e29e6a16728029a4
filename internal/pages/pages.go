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

// Read returns the pages of a list, at most most. ask sends a request with params, nil for the first page, to
// the server, and returns the result. After an error, which is that of ask or an [Endless], there are no more pages.
func Read(most int, ask func(params json.RawMessage) (result json.RawMessage, err error)) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		cursor := ""
		seen := make(map[[sha256.Size]byte]bool) // the cursors: they may be long
		for n := 1; ; n++ {
			result, err := ask(Page{Cursor: cursor}.Params())
			if err != nil {
				yield(Page{}, err)
				return
			}
			next := Next(result)
			if !yield(Page{cursor, result, next == nil}, nil) || next == nil {
				return
			}
			hash := sha256.Sum256(next)
			switch {
			case string(next) == cursor:
				yield(Page{}, again("each page", next))
				return
			case seen[hash]:
				yield(Page{}, again("several pages", next))
				return
			case n == most:
				yield(Page{}, Endless(fmt.Sprintf("there are over %d pages", most)))
				return
			}
			seen[hash] = true
			cursor = string(next)
		}
	}
}

func again(where string, cursor json.RawMessage) Endless {
	text, _ := rawjson.Text(cursor)
	return Endless(fmt.Sprintf("the server returns the same nextCursor for %s: %.40q", where, text))
}
