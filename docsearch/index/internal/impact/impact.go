// Package impact weighs the words of a piece of a document.
package impact

import (
	"bytes"
	"hash/maphash"
	"path"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

// A term's impact on a piece is its frequency, weighted by where it stands and damped
// by the piece's length as BM25 does. It is stored as one of four classes, of which the
// first is for the terms of the document's name and title, whatever their frequency: the
// full-text table holds each term of a piece once, followed by the digit of its class.
// FTS5 finds the pieces of a class much faster than it can count and rank them.
const (
	weightBody    = 1
	weightHeading = 3
	weightPath    = 3

	k1         = 1.2
	lengthPart = 0.75 // BM25's b
	usualTerms = 1000 // of a piece
)

// Classes give, for each class, the least impact that belongs to it and the impact that
// a search assumes for it.
var Classes = [...]struct {
	Digit byte
	least float64
	Value float64
}{{named, 2, 1}, {'3', 0.7, 0.8}, {'2', 0.45, 0.5}, {'1', 0, 0.3}}

// named is the class of the terms of a name or title.
const named = '4'

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

// Split splits a term of the full-text table into its word and the number of its class.
func Split(term string) (word string, class int) {
	last := len(term) - 1
	for i, c := range Classes {
		if term[last] == c.Digit {
			class = i
		}
	}
	return term[:last], class
}

// Weigher makes the rows of the full-text table. It is reused, by one goroutine; the
// zero Weigher is ready.
type Weigher struct {
	terms []weighed
	slots []int32 // a hash table: 0, or 1 more than the index of a term
	row   []byte  // each term, room for its class, and a space
}

// weighed is a term of the row.
type weighed struct {
	start, end int32 // in the row
	hash       uint32
	weight     int32
	named      bool // it stands in the name or the title
}

var seed = maphash.MakeSeed()

// add weighs the terms of a text, and returns how many there are.
func (w *Weigher) add(text string, weight int32) (n int) {
	words.Each(text, func(t words.Term) {
		n++
		w.term(t.Text).weight += weight
	})
	return n
}

// addName adds a name or title.
func (w *Weigher) addName(text string) {
	words.Each(text, func(t words.Term) { w.term(t.Text).named = true })
}

// term returns the entry of a term, which it adds if there is none.
func (w *Weigher) term(text []byte) *weighed {
	if 2*len(w.terms) >= len(w.slots) {
		w.grow()
	}
	hash := uint32(maphash.Bytes(seed, text))
	i := int(hash) & (len(w.slots) - 1)
	for ; w.slots[i] != 0; i = (i + 1) & (len(w.slots) - 1) {
		t := &w.terms[w.slots[i]-1]
		if t.hash == hash && bytes.Equal(w.row[t.start:t.end], text) {
			return t
		}
	}
	start := int32(len(w.row))
	w.row = append(append(w.row, text...), 0, ' ')
	w.terms = append(w.terms, weighed{start: start, end: start + int32(len(text)), hash: hash})
	w.slots[i] = int32(len(w.terms))
	return &w.terms[len(w.terms)-1]
}

// grow doubles the hash table.
func (w *Weigher) grow() {
	w.slots = make([]int32, max(1<<12, 2*len(w.slots)))
	for n, t := range w.terms {
		i := int(t.hash) & (len(w.slots) - 1)
		for w.slots[i] != 0 {
			i = (i + 1) & (len(w.slots) - 1)
		}
		w.slots[i] = int32(n + 1)
	}
}

// Row returns what the full-text table is given for a piece of the document at the
// relative path p.
func (w *Weigher) Row(d *extract.Document, p string, pc *pieces.Piece) string {
	w.terms, w.row = w.terms[:0], w.row[:0]
	clear(w.slots)
	n := w.add(pc.Text, weightBody)
	dir, name := path.Split(p)
	w.addName(d.Title)
	w.addName(strings.TrimSuffix(name, path.Ext(name)))
	w.add(path.Ext(name), weightBody)
	w.add(dir, weightPath)
	heading := ""
	for _, c := range pc.Chunks {
		if c.Heading != heading {
			heading = c.Heading
			w.add(heading, weightHeading)
		}
	}
	for _, t := range w.terms {
		w.row[t.end] = classOf(int(t.weight), n)
		if t.named {
			w.row[t.end] = named
		}
	}
	return string(w.row)
}
