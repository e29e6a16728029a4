// Package impact weighs the words of a piece of a document.
package impact

import (
	"path"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

// A term's impact on a piece is its frequency, weighted by where it stands and damped
// by the piece's length as BM25 does. It is stored as one of three classes: the
// full-text table holds each term of a piece once, followed by the digit of its class.
// FTS5 finds the pieces of a class much faster than it can count and rank them.
const (
	weightBody    = 1
	weightHeading = 3
	weightPath    = 3
	weightName    = 5
	weightTitle   = 6

	k1         = 1.2
	lengthPart = 0.75 // BM25's b
	usualTerms = 1000 // of a piece
)

// Classes are the borders of the impact's classes and the impact that each stands for.
var Classes = [...]struct {
	Digit byte
	least float64
	Value float64
}{{'3', 0.7, 1}, {'2', 0.45, 0.65}, {'1', 0, 0.35}}

// classOf returns the digit of the class of a term with the weighted frequency w in a
// piece of n terms.
func classOf(w, n int) byte {
	k := k1 * (1 - lengthPart + lengthPart*float64(n)/usualTerms)
	impact := float64(w) / (float64(w) + k)
	for _, c := range Classes {
		if impact >= c.least {
			return c.Digit
		}
	}
	return '1'
}

// Weigher makes the rows of the full-text table. It is reused, by one goroutine.
type Weigher struct {
	weights map[string]int // index into counts
	names   []string
	counts  []int
}

func (w *Weigher) add(text string, weight int) (n int) {
	words.Each(text, func(t words.Term) {
		n++
		i, ok := w.weights[string(t.Text)]
		if !ok {
			i = len(w.names)
			name := string(t.Text)
			w.weights[name] = i
			w.names = append(w.names, name)
			w.counts = append(w.counts, 0)
		}
		w.counts[i] += weight
	})
	return n
}

// Row returns what the full-text table is given for a piece of the document at the
// relative path p.
func (w *Weigher) Row(d *extract.Document, p string, pc *pieces.Piece) string {
	if w.weights == nil {
		w.weights = make(map[string]int)
	}
	clear(w.weights)
	w.names, w.counts = w.names[:0], w.counts[:0]
	n := w.add(pc.Text, weightBody)
	dir, name := path.Split(p)
	w.add(d.Title, weightTitle)
	w.add(strings.TrimSuffix(name, path.Ext(name)), weightName)
	w.add(path.Ext(name), weightBody)
	w.add(dir, weightPath)
	heading := ""
	for _, c := range pc.Chunks {
		if c.Heading != heading {
			heading = c.Heading
			w.add(heading, weightHeading)
		}
	}
	var b strings.Builder
	size := 0
	for _, name := range w.names {
		size += len(name) + 2
	}
	b.Grow(size)
	for i, name := range w.names {
		b.WriteString(name)
		b.WriteByte(classOf(w.counts[i], n))
		b.WriteByte(' ')
	}
	return b.String()
}
