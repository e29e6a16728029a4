package index

import "context"

// BeginRemoval is RemoveFolder until it is interrupted.
func BeginRemoval(ctx context.Context, x *Index, folder string) error {
	_, err := x.hide(ctx, folder)
	return err
}

// WithMaxPages returns o with a bound on the pages of the file, as a full disk has.
func WithMaxPages(o Options, n int) Options {
	o.maxPages = n
	return o
}

// Snippet returns the snippet of a text for a query, "" if the query is empty.
func Snippet(query, text string) string {
	p, err := parse(&Query{Text: query})
	if err != nil {
		return ""
	}
	for i := range p.words {
		p.weigh(i, i+1, 100)
	}
	return p.snippet(text, p.rate(text).matches)
}

// ParseCursor tells whether s is a cursor of a query.
func ParseCursor(s string, query uint64) error {
	c, err := parseCursor(s, query)
	if err == nil && s != "" && c.String() != s {
		panic("the cursor has two forms")
	}
	return err
}

// Cursor returns a cursor of a query.
func Cursor(query uint64, at int) string { return cursor{query, at, 0.5}.String() }

var (
	Pieces       = pieces
	AppendChunks = appendChunks
	ParseChunks  = parseChunks
)

type Piece = piece

// Own returns the text that only this piece has.
func (p *piece) Own() string { return p.text[:p.own] }

// Chunks returns the texts of the chunks.
func (p *piece) Chunks() (all []string) {
	for _, c := range p.chunks {
		all = append(all, p.text[c.start:c.end])
	}
	return all
}

// Terms returns the terms of a text.
func Terms(text string) (all []string) {
	terms(text, func(t term) { all = append(all, string(t.text)) })
	return all
}

// Words returns the words that a query looks up.
func Words(text string) (all []string) {
	p, err := parse(&Query{Text: text})
	if err != nil {
		return nil
	}
	for _, w := range p.words {
		all = append(all, w.text)
	}
	return all
}
