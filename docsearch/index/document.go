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
		ID: DocumentID(f.path, d.Path), Name: d.Title, Folder: f.path,
		Path: filepath.Join(f.path, filepath.FromSlash(d.Path)), Type: d.Type,
		Bytes: d.Size, Modified: time.Unix(0, d.Modified).UTC(), Chunks: len(d.Starts),
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
			if err != nil || known == nil || len(known.Starts) == 0 {
				return err
			}
			d = &api.Document{DocumentSummary: f.summary(known), Title: known.Title, TextBytes: known.Bytes}
			return readText(r, d, known.Starts, min(max(offset, 0), known.Bytes), max(limit, utf8.UTFMax))
		})
		if err != nil || d != nil {
			return d, err
		}
	}
	return nil, fmt.Errorf("%w: %.40q", ErrNoDocument, id)
}

// readText sets the text of d from its passages.
func readText(r index.IndexReader, d *api.Document, starts []int, offset, limit int) error {
	n := max(0, sort.SearchInts(starts, offset+1)-1)
	first := starts[n]
	var b strings.Builder
	for ; n < len(starts) && starts[n] < offset+limit; n++ {
		own := d.TextBytes - starts[n]
		if n+1 < len(starts) {
			own = starts[n+1] - starts[n]
		}
		stored, err := r.Document(passageID(d.ID, n))
		if err != nil {
			return err
		}
		if stored == nil {
			return fmt.Errorf("%w: a passage is missing", ErrCorrupt)
		}
		text := textOf(stored)
		b.WriteString(text[max(0, len(text)-own):])
	}
	text := b.String()
	from := cutBefore(text, offset-first)
	to := cutBefore(text, min(len(text), from+limit))
	d.Offset, d.Text = first+from, text[from:to]
	if first+to < d.TextBytes {
		d.NextOffset = first + to
	}
	return nil
}

// textOf returns the text of a passage.
func textOf(d index.Document) string { return string(valueOf(d, fieldText)) }
