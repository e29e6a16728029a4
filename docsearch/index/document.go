package index

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// summary describes a document to clients.
func (f *folder) summary(d *file) api.DocumentSummary {
	s := api.DocumentSummary{
		ID: DocumentID(f.path, d.Path), Name: d.Title, Folder: f.path, Path: filepath.Join(f.path, filepath.FromSlash(d.Path)), Type: d.Type,
		Bytes: d.Size, Modified: time.Unix(0, d.Modified).UTC(), Chunks: d.Passages,
	}
	if s.Name == "" {
		s.Name = filepath.Base(s.Path)
	}
	return s
}

// Documents returns the first limit documents of a folder after a cursor, in the order of
// their paths.
func (x *Index) Documents(ctx context.Context, path, cursor string, limit int) (answer *api.Documents, err error) {
	after, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return nil, ErrCursor
	}
	f, err := x.folder(path)
	if err != nil {
		return nil, err
	}
	q := bleve.NewTermQuery(kindDocument)
	q.SetField(fieldKind)
	r := bleve.NewSearchRequestOptions(q, limit+1, 0, false)
	r.Fields = []string{fieldFile}
	r.SortBy([]string{fieldName})
	if len(after) > 0 {
		r.SetSearchAfter([]string{string(after)})
	}
	err = f.call("list documents", func() error {
		answer = &api.Documents{Documents: []api.DocumentSummary{}}
		found, err := f.words.SearchInContext(ctx, r)
		if err != nil {
			return err
		}
		var d file
		for _, hit := range found.Hits {
			if len(answer.Documents) == limit {
				answer.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(d.Path))
				break
			}
			data, _ := hit.Fields[fieldFile].(string)
			d = file{}
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				return err
			}
			answer.Documents = append(answer.Documents, f.summary(&d))
		}
		return nil
	})
	return answer, err
}

// Document returns a document with limit bytes of its text from offset on. It moves both
// ends back to a border between characters; a part has at least one character. It fails
// with ErrNoDocument.
func (x *Index) Document(id string, offset, limit int) (d *api.Document, err error) {
	all, err := x.all()
	if err != nil {
		return nil, err
	}
	if strings.Contains(id, "/") {
		all = nil // it is that of a passage
	}
	for _, f := range all {
		err := f.read("read document", func(r index.IndexReader) error {
			known, err := readFile(r, id)
			if err != nil || known == nil || known.Passages == 0 {
				return err
			}
			d = &api.Document{DocumentSummary: f.summary(known), Title: known.Title, TextBytes: known.Bytes}
			return readText(r, d, max(offset, 0), max(limit, utf8.UTFMax))
		})
		if err != nil || d != nil {
			return d, err
		}
	}
	return nil, fmt.Errorf("%w: %.40q", ErrNoDocument, id)
}

// readText sets the text of d from its passages.
func readText(r index.IndexReader, d *api.Document, offset, limit int) (err error) {
	d.Offset = min(offset, d.TextBytes)
	read := func(n int) (p passage) {
		if err == nil {
			var found bool
			if p, found, err = readPassage(r, passageID(d.ID, n)); err == nil && !found {
				err = fmt.Errorf("%w: a passage is missing", ErrCorrupt)
			}
		}
		return p
	}
	n := sort.Search(d.Chunks, func(n int) bool {
		p := read(n)
		return p.Start+p.Own > d.Offset
	})
	var b strings.Builder
	first := d.Offset // the offset of what is in b
	for ; err == nil && n < d.Chunks && first+b.Len() < d.Offset+limit; n++ {
		p := read(n)
		if b.Len() == 0 {
			first = p.Start
		}
		b.WriteString(p.text[len(p.text)-p.Own:])
	}
	text := b.String()
	from := cutBefore(text, d.Offset-first)
	to := cutBefore(text, min(len(text), from+limit))
	d.Offset, d.Text = first+from, text[from:to]
	if first+to < d.TextBytes {
		d.NextOffset = first + to
	}
	return err
}

// readPassage returns a passage, if it is in the index.
func readPassage(r index.IndexReader, id string) (p passage, found bool, err error) {
	d, err := r.Document(id)
	if d == nil || err != nil {
		return p, false, err
	}
	p.text = string(stored(d, fieldText))
	if err = json.Unmarshal(stored(d, fieldPlace), &p.place); err == nil && p.Own > len(p.text) {
		err = fmt.Errorf("%w: a passage is too short", ErrCorrupt)
	}
	return p, true, err
}
