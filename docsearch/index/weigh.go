package index

import (
	"path"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
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

// classes are the borders of the impact's classes and the impact that each stands for.
var classes = [...]struct {
	digit byte
	least float64
	value float64
}{{'3', 0.7, 1}, {'2', 0.45, 0.65}, {'1', 0, 0.35}}

// classOf returns the digit of the class of a term with the weighted frequency w in a
// piece of n terms.
func classOf(w, n int) byte {
	k := k1 * (1 - lengthPart + lengthPart*float64(n)/usualTerms)
	impact := float64(w) / (float64(w) + k)
	for _, c := range classes {
		if impact >= c.least {
			return c.digit
		}
	}
	return '1'
}

// weigher makes the rows of the full-text table. It is reused, by one goroutine.
type weigher struct {
	weights map[string]int // index into counts
	names   []string
	counts  []int
}

func (w *weigher) add(text string, weight int) (n int) {
	terms(text, func(t term) {
		n++
		i, ok := w.weights[string(t.text)]
		if !ok {
			i = len(w.names)
			name := string(t.text)
			w.weights[name] = i
			w.names = append(w.names, name)
			w.counts = append(w.counts, 0)
		}
		w.counts[i] += weight
	})
	return n
}

// row returns what the full-text table is given for a piece of the document at the
// relative path p.
func (w *weigher) row(d *extract.Document, p string, pc *piece) string {
	if w.weights == nil {
		w.weights = make(map[string]int)
	}
	clear(w.weights)
	w.names, w.counts = w.names[:0], w.counts[:0]
	n := w.add(pc.text, weightBody)
	dir, name := path.Split(p)
	w.add(d.Title, weightTitle)
	w.add(strings.TrimSuffix(name, path.Ext(name)), weightName)
	w.add(path.Ext(name), weightBody)
	w.add(dir, weightPath)
	heading := ""
	for _, c := range pc.chunks {
		if c.heading != heading {
			heading = c.heading
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
