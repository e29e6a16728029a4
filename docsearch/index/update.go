package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/vectors"
)

// batchBytes is how much text is written at a time. Indexing takes some thirty times as
// much memory.
const batchBytes = 1 << 20

// Stamp tells one state of a file from another.
type Stamp struct {
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"`          // Unix nanoseconds
	Hash     string `json:"hash,omitempty"`    // of the content
	Skipped  string `json:"skipped,omitempty"` // why the file is not indexed
}

// Change is what became of one file.
type Change struct {
	Path     string // relative to the folder, with slashes
	Delete   bool
	Stamp    Stamp
	Document *extract.Document // nil and not Delete: only the stamp changes, or the file is skipped
}

// DocumentID returns the ID of the document at a relative path of a folder.
func DocumentID(folder, path string) string {
	sum := sha256.Sum256([]byte(folder + "\x00" + path))
	return hex.EncodeToString(sum[:8])
}

// passageID returns the ID of a passage, which begins with that of its document.
func passageID(document string, n int) string { return fmt.Sprintf("%s/%d", document, n) }

// file is what the index stores of a file.
type file struct {
	Path string `json:"path"`
	Stamp
	Type   string `json:"type,omitempty"`
	Title  string `json:"title,omitempty"`
	Bytes  int    `json:"bytes"`            // of text
	Starts []int  `json:"starts,omitempty"` // of the passages in the text, after what they repeat
}

// Stamps returns the stamps of the files of a folder by their relative paths.
func (x *Index) Stamps(ctx context.Context, path string) (stamps map[string]Stamp, err error) {
	f, err := x.folder(path)
	if err != nil {
		return nil, err
	}
	stamps = map[string]Stamp{}
	return stamps, f.read("read stamps", func(r index.IndexReader) error {
		for _, kind := range []string{kindDocument, kindSkipped} {
			err := each(ctx, r, fieldKind, kind, func(id string) error {
				known, err := readFile(r, id)
				if known != nil {
					stamps[known.Path] = known.Stamp
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// each calls f with the IDs of what has a term.
func each(ctx context.Context, r index.IndexReader, field, term string, f func(id string) error) error {
	terms, err := r.TermFieldReader(ctx, []byte(term), field, false, false, false)
	if err != nil {
		return err
	}
	defer terms.Close()
	for ctx.Err() == nil {
		d, err := terms.Next(nil)
		if err != nil || d == nil {
			return err
		}
		id, err := r.ExternalID(d.ID)
		if err == nil {
			err = f(id)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// readFile returns what is stored of the file with an ID, nil if there is none.
func readFile(r index.IndexReader, id string) (*file, error) {
	d, err := r.Document(id)
	if d == nil || err != nil {
		return nil, err
	}
	known := &file{}
	return known, json.Unmarshal(valueOf(d, fieldFile), known)
}

// valueOf returns the value of a stored field.
func valueOf(d index.Document, name string) (value []byte) {
	d.VisitFields(func(f index.Field) {
		if f.Name() == name {
			value = f.Value()
		}
	})
	return value
}

// Complete records that a folder was indexed whole at that time.
func (x *Index) Complete(path string, at time.Time) error {
	f, err := x.folder(path)
	if err != nil {
		return err
	}
	return f.change("complete folder", func() error {
		r := *f.record.Load()
		r.IndexedAt = at
		return f.write(f.words.NewBatch(), r)
	})
}

// Update applies changes to a folder, each of another file, in batches. If it fails, or the
// process ends, each file is as before, or as it is now, or has a stamp that tells it from
// both.
func (x *Index) Update(ctx context.Context, folder string, changes []Change) error {
	f, err := x.folder(folder)
	if err != nil {
		return err
	}
	return f.change("update index", func() error {
		u := &updater{folder: f}
		u.begin()
		for i := range changes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := u.apply(x, &changes[i]); err != nil {
				return fmt.Errorf("%s: %w", changes[i].Path, err)
			}
		}
		return u.flush()
	})
}

// updater gathers changes in a batch.
type updater struct {
	folder *folder
	batch  *bleve.Batch
	bytes  int
	record record
}

// begin begins a batch.
func (u *updater) begin() {
	u.batch, u.bytes = u.folder.words.NewBatch(), 0
	u.record = *u.folder.record.Load()
	u.record.Skipped = maps.Clone(u.record.Skipped)
	if u.record.Skipped == nil {
		u.record.Skipped = map[string]int{}
	}
}

func (u *updater) flush() error {
	if u.batch.Size() == 0 {
		return nil
	}
	err := u.folder.write(u.batch, u.record)
	u.begin()
	return err
}

func (u *updater) apply(x *Index, c *Change) error {
	id := DocumentID(u.folder.path, c.Path)
	var old *file
	err := u.folder.view(func(r index.IndexReader) (err error) {
		old, err = readFile(r, id)
		return err
	})
	if err != nil {
		return err
	}
	now := &file{Path: c.Path, Stamp: c.Stamp}
	if !c.Delete && c.Document == nil && c.Stamp.Skipped == "" && old != nil { // the same content at another time
		now.Type, now.Title, now.Bytes, now.Starts = old.Type, old.Title, old.Bytes, old.Starts
		return u.put(id, now)
	}
	if old != nil {
		for n := range old.Starts {
			u.batch.Delete(passageID(id, n))
		}
		u.count(old, -1)
	}
	if c.Delete {
		u.batch.Delete(id)
		return nil
	}
	if c.Document != nil {
		return u.add(x, id, now, c.Document)
	}
	u.count(now, 1)
	return u.put(id, now)
}

// put writes what is stored of a file.
func (u *updater) put(id string, f *file) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	kind := kindDocument
	if len(f.Starts) == 0 {
		kind = kindSkipped
	}
	return u.batch.Index(id, map[string]any{fieldKind: kind, fieldName: f.Path, fieldFile: string(data)})
}

// add writes a document. One that is too large for a batch gets a stamp that no file has
// until it is complete.
func (u *updater) add(x *Index, id string, f *file, d *extract.Document) error {
	passages := cut(d)
	f.Type, f.Title, f.Bytes = d.Type, d.Title, len(d.Text)
	for _, p := range passages {
		f.Starts = append(f.Starts, p.start)
	}
	u.count(f, 1)
	if len(d.Text) > batchBytes {
		partly := *f
		partly.Size, partly.Hash = -1, ""
		if err := u.put(id, &partly); err != nil {
			return err
		}
	}
	for n, p := range passages {
		at, err := json.Marshal(p.location)
		if err != nil {
			return err
		}
		fields := map[string]any{fieldText: p.text, fieldTitle: d.Title, fieldPath: f.Path,
			fieldHash: vectors.KeyOf(p.text).String(), fieldPlace: string(at)}
		if n == 0 {
			name := path.Base(f.Path)
			fields[fieldNames] = []string{x.oneName(d.Title), x.oneName(name),
				x.oneName(strings.TrimSuffix(name, path.Ext(name)))}
		}
		if err := u.batch.Index(passageID(id, n), fields); err != nil {
			return err
		}
		u.bytes += len(p.text)
		if u.bytes > batchBytes {
			if err := u.flush(); err != nil {
				return err
			}
		}
	}
	return u.put(id, f)
}

// count counts a file, or with -1 one less.
func (u *updater) count(f *file, sign int) {
	r := &u.record
	if len(f.Starts) > 0 {
		r.Documents += sign
	}
	r.Chunks += sign * len(f.Starts)
	r.TextBytes += int64(sign * f.Bytes)
	if f.Skipped != "" {
		r.Skipped[f.Skipped] += sign
		if r.Skipped[f.Skipped] == 0 {
			delete(r.Skipped, f.Skipped)
		}
	}
}
