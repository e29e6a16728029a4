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

const (
	defaultDocuments = 100
	maxDocuments     = 1000
	defaultText      = 64 << 10
	maxText          = 1 << 20
	maxPathBytes     = 8 << 10 // of a cursor of Documents
)

// summary describes a document to clients.
func (f *folder) summary(d *file) api.DocumentSummary {
	return api.DocumentSummary{
		ID: DocumentID(f.path, d.Path), Name: nameOf(d), Folder: f.path, Path: f.abs(d), Type: d.Type,
		Bytes: d.Size, Modified: time.Unix(0, d.Modified).UTC(), Chunks: d.Passages,
	}
}

func (f *folder) abs(d *file) string {
	return filepath.Join(f.path, filepath.FromSlash(d.Path))
}

// nameOf returns the title, or the file's name.
func nameOf(d *file) string {
	if d.Title != "" {
		return d.Title
	}
	return filepath.Base(filepath.FromSlash(d.Path))
}

// Documents returns the documents of a folder in the order of their paths: limit of
// them (1-1000; 0 is 100), from the cursor on.
func (x *Index) Documents(ctx context.Context, path, cursor string, limit int) (*api.Documents, error) {
	if limit == 0 {
		limit = defaultDocuments
	}
	limit = min(max(limit, 1), maxDocuments)
	after, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(after) > maxPathBytes || !utf8.Valid(after) {
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
	answer := &api.Documents{Documents: []api.DocumentSummary{}}
	return answer, f.call("list documents", func() error {
		found, err := f.words.SearchInContext(ctx, r)
		if err != nil {
			return err
		}
		var last string
		for _, hit := range found.Hits {
			if len(answer.Documents) == limit {
				answer.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(last))
				break
			}
			var d file
			data, _ := hit.Fields[fieldFile].(string)
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				return err
			}
			last = d.Path
			answer.Documents = append(answer.Documents, f.summary(&d))
		}
		return nil
	})
}

// Document returns a document with limit bytes (0 is 65,536; at most 1 MiB) of its text
// from offset on. It moves both ends back to a border between characters; a part has
// at least one character. It fails with ErrNoDocument.
func (x *Index) Document(_ context.Context, id string, offset, limit int) (d *api.Document, err error) {
	if limit <= 0 {
		limit = defaultText
	}
	limit = min(max(limit, utf8.UTFMax), maxText)
	all, err := x.all()
	if err != nil {
		return nil, err
	}
	if len(id) != len(DocumentID("", "")) {
		all = nil // it may be that of a passage
	}
	for _, f := range all {
		err := f.call("read document", func() error {
			return f.read(func(r index.IndexReader) error {
				known, err := readFile(r, id)
				if err != nil || known == nil || known.Passages == 0 {
					return err
				}
				d = &api.Document{DocumentSummary: f.summary(known), Title: known.Title, TextBytes: known.Bytes}
				return readText(r, d, max(offset, 0), limit)
			})
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
	n := sort.Search(d.Chunks, func(n int) bool {
		p, _, failed := readPassage(r, passageID(d.ID, n))
		if failed != nil {
			err = failed
		}
		return p.Start+p.Own > d.Offset
	})
	var b strings.Builder
	first := -1 // the offset of what is in b
	for ; err == nil && n < d.Chunks && (first < 0 || first+b.Len() < d.Offset+limit); n++ {
		var p place
		var text string
		if p, text, err = readPassage(r, passageID(d.ID, n)); err == nil {
			b.WriteString(text[len(text)-p.Own:])
			if first < 0 {
				first = p.Start
			}
		}
	}
	if err != nil || first < 0 {
		return err
	}
	text := b.String()
	from := cutBefore(text, d.Offset-first)
	to := cutBefore(text, min(len(text), from+limit))
	d.Offset, d.Text = first+from, text[from:to]
	if first+to < d.TextBytes {
		d.NextOffset = first + to
	}
	return nil
}

// readPassage returns a passage, which must be in the index.
func readPassage(r index.IndexReader, id string) (p place, text string, err error) {
	d, err := r.Document(id)
	if err == nil && d == nil {
		err = fmt.Errorf("%w: a passage is missing", ErrCorrupt)
	}
	if err != nil {
		return p, "", err
	}
	text = string(stored(d, fieldText))
	if err = json.Unmarshal(stored(d, fieldPlace), &p); err == nil && p.Own > len(text) {
		err = fmt.Errorf("%w: a passage is too short", ErrCorrupt)
	}
	return p, text, err
}
