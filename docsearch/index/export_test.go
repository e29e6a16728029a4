package index

import (
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
)

// WithQueryTimeout returns o with a bound on how long a query waits for its vector.
func WithQueryTimeout(o Options, d time.Duration) Options {
	o.queryTimeout = d
	return o
}

// Cut returns the passages of a document: the text of each, and where its own part starts.
func Cut(d *extract.Document) (texts []string, starts []int) {
	for _, p := range cut(d) {
		texts, starts = append(texts, p.text), append(starts, p.start)
	}
	return texts, starts
}
