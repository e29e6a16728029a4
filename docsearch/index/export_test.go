package index

import (
	"errors"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
)

// WithQueryTimeout returns o with a bound on how long a query waits for its vector.
func WithQueryTimeout(o Options, d time.Duration) Options {
	o.queryTimeout = d
	return o
}

// WriteAfterFailure writes an empty batch when bleve has reported a failure.
func (x *Index) WriteAfterFailure(path string) error {
	f, err := x.folder(path)
	if err != nil {
		return err
	}
	return f.change("write", func() error {
		f.fail(errors.New("a failure of bleve"))
		return f.write(f.words.NewBatch(), *f.record.Load())
	})
}

// WriteVersion makes the index of a folder one of another version.
func (x *Index) WriteVersion(path string, version int) error {
	f, err := x.folder(path)
	if err != nil {
		return err
	}
	return f.change("write", func() error {
		r := *f.record.Load()
		r.Version = version
		return f.write(f.words.NewBatch(), r)
	})
}

// Cut returns the passages of a document: the text of each, and where its own part starts.
func Cut(d *extract.Document) (texts []string, starts []int) {
	for _, p := range cut(d) {
		texts, starts = append(texts, p.text), append(starts, p.start)
	}
	return texts, starts
}

// Headings returns the passages of a document: the text and the heading of each.
func Headings(d *extract.Document) (texts, headings []string) {
	for _, p := range cut(d) {
		texts, headings = append(texts, p.text), append(headings, p.location.Heading)
	}
	return texts, headings
}

// ContentWords returns the words of a text as they are in the index, without stop words.
func (x *Index) ContentWords(text string) (words []string) {
	for word := range strings.FieldsSeq(text) {
		if !x.stop[strings.ToLower(strings.Trim(word, ".,;:!?\"'()"))] {
			for _, one := range x.tokens(word) {
				words = append(words, one.word)
			}
		}
	}
	return words
}

// Formers returns how many models before are in memory.
func (x *Index) Formers() int { return len(x.formers.used) }
