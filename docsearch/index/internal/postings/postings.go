// Package postings keeps the lists of pieces that have a word.
package postings

import (
	"strconv"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/impact"
)

// Lists are the pieces that have a word, by the class of its impact.
type Lists struct {
	Rows [len(impact.Classes)][]int64
	N    int
}

// Parse parses numbers between commas.
func Parse(list []byte) ([]int64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all := make([]int64, 0, len(list)/14+1)
	var n int64
	for _, c := range list {
		switch {
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
		case c == ',':
			all = append(all, n)
			n = 0
		default:
			return nil, strconv.ErrSyntax
		}
	}
	return append(all, n), nil
}
