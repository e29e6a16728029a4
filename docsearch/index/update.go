package index

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/impact"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/postings"
)

// Stamp tells one state of a file from another.
type Stamp struct {
	Size    int64
	ModTime time.Time
	Hash    [32]byte // SHA-256 of the content
	Skipped string   // why the file is not indexed, or ""
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

// keyOf returns the ID as it is stored.
func keyOf(id string) (int64, error) {
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil || len(id) != 16 {
		return 0, fmt.Errorf("%w: %.40q", ErrNoDocument, id)
	}
	return int64(n), nil
}

// Stamps returns the stamps of the files of a folder by their relative paths.
func (x *Index) Stamps(ctx context.Context, folder string) (stamps map[string]Stamp, err error) {
	err = x.view(ctx, "read stamps", func(tx *sql.Tx) error {
		id, err := folderID(ctx, tx, folder)
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT path, size, modified, hash, skipped FROM document WHERE folder = ?", id)
		if err != nil {
			return err
		}
		defer rows.Close()
		stamps = map[string]Stamp{}
		for rows.Next() {
			var path string
			var s Stamp
			var modified int64
			var hash sql.RawBytes
			if err := rows.Scan(&path, &s.Size, &modified, &hash, &s.Skipped); err != nil {
				return err
			}
			s.ModTime = time.Unix(0, modified)
			copy(s.Hash[:], hash)
			stamps[path] = s
		}
		return rows.Err()
	})
	return stamps, err
}

// Update applies changes to a folder: all, or none if it fails. Searches see either
// the state before or the one after. Some megabytes of text in one call are indexed
// fastest.
func (x *Index) Update(ctx context.Context, folder string, changes []Change) error {
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	made := makeRows(ctx, &workers, changes)
	return x.changePieces(ctx, "update index", func(tx *sql.Tx, c *postings.Change) error {
		id, err := folderID(ctx, tx, folder)
		if err != nil {
			return err
		}
		u := &updater{tx: tx, folder: id, path: folder, lists: c, vectors: x.vectors.ready()}
		for i := range changes {
			c := &changes[i]
			if err := u.apply(ctx, c, made[i]); err != nil {
				return fmt.Errorf("%s: %w", c.Path, err)
			}
		}
		return u.count(ctx)
	})
}

// rows are what the tables get of one document.
type rows struct {
	pieces []pieces.Piece
	chunks [][]byte // of each piece, encoded
	words  []string // of each piece
}

// makeRows makes the rows of the changes' documents in the background. Each worker is
// one document ahead of the reader, and ends with ctx.
func makeRows(ctx context.Context, workers *sync.WaitGroup, changes []Change) []chan *rows {
	made := make([]chan *rows, len(changes))
	for i := range made {
		made[i] = make(chan *rows)
	}
	next := make(chan int)
	workers.Go(func() {
		defer close(next)
		for i := range changes {
			if changes[i].Document == nil || changes[i].Delete {
				continue
			}
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	for range min(len(changes), runtime.GOMAXPROCS(0)) {
		workers.Go(func() { makeSome(ctx, changes, next, made) })
	}
	return made
}

func makeSome(ctx context.Context, changes []Change, next <-chan int, made []chan *rows) {
	var w impact.Weigher
	for i := range next {
		r := rowsOf(&w, &changes[i])
		select {
		case made[i] <- r:
		case <-ctx.Done():
			return
		}
	}
}

// rowsOf makes the rows of one document.
func rowsOf(w *impact.Weigher, c *Change) *rows {
	r := &rows{pieces: pieces.Cut(c.Document)}
	if len(r.pieces) > maxPieces {
		r.pieces = r.pieces[:maxPieces]
	}
	for i := range r.pieces {
		r.chunks = append(r.chunks, pieces.AppendChunks(nil, r.pieces[i].Chunks))
		r.words = append(r.words, w.Row(c.Document, c.Path, &r.pieces[i]))
	}
	return r
}

// updater applies changes to one folder in one transaction.
type updater struct {
	tx      *sql.Tx
	folder  int64
	path    string
	lists   *postings.Change // what it does to pieces
	last    int64            // the highest id in the folder, 0: not known yet
	vectors bool             // the tables of the vectors exist
	stmts   map[string]*sql.Stmt

	documents, chunks, pieces, bytes int64 // added, less removed
}

// stored is what is known of a document that is in the index.
type stored struct {
	id, chunks, pieces, bytes int64
}

func (u *updater) exec(ctx context.Context, query string, args ...any) error {
	s, err := u.prepared(ctx, query)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(ctx, args...)
	return err
}

// prepared returns the statement of query, which ends with the transaction.
func (u *updater) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := u.stmts[query]; ok {
		return s, nil
	}
	s, err := u.tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if u.stmts == nil {
		u.stmts = map[string]*sql.Stmt{}
	}
	u.stmts[query] = s
	return s, nil
}

func (u *updater) apply(ctx context.Context, c *Change, made <-chan *rows) error {
	old, err := u.find(ctx, c.Path)
	if err != nil {
		return err
	}
	switch {
	case c.Delete:
		if old.id == 0 {
			return nil
		}
		return u.drop(ctx, old)
	case c.Document != nil:
		select {
		case r := <-made:
			return u.put(ctx, old, c, r)
		case <-ctx.Done():
			return ctx.Err()
		}
	case old.id == 0 || c.Stamp.Skipped != "":
		return u.put(ctx, old, c, &rows{})
	}
	s := c.Stamp
	return u.exec(ctx, "UPDATE document SET size = ?, modified = ?, hash = ? WHERE id = ?",
		s.Size, s.ModTime.UnixNano(), s.Hash[:], old.id)
}

func (u *updater) find(ctx context.Context, path string) (d stored, err error) {
	s, err := u.prepared(ctx, "SELECT id, chunks, pieces, bytes FROM document WHERE folder = ? AND path = ?")
	if err != nil {
		return d, err
	}
	err = s.QueryRowContext(ctx, u.folder, path).Scan(&d.id, &d.chunks, &d.pieces, &d.bytes)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return d, err
}

// put replaces the document old, or adds one.
func (u *updater) put(ctx context.Context, old stored, c *Change, r *rows) error {
	id := old.id
	if id != 0 {
		if err := u.clear(ctx, old); err != nil {
			return err
		}
	} else {
		var err error
		if id, err = u.newID(ctx); err != nil {
			return err
		}
	}
	d := stored{id: id, pieces: int64(len(r.pieces))}
	for i := range r.pieces {
		p := &r.pieces[i]
		d.chunks += int64(len(p.Chunks))
		d.bytes += int64(p.Own)
		row := id<<pieceShift | int64(i)
		if err := u.exec(ctx, "INSERT INTO piece (id, start, own, chunks, text) VALUES (?, ?, ?, ?, ?)",
			row, p.Start, p.Own, r.chunks[i], p.Text); err != nil {
			return err
		}
		if err := u.exec(ctx, "INSERT INTO words (rowid, term) VALUES (?, ?)", row, r.words[i]); err != nil {
			return err
		}
		u.lists.Add(row, r.words[i])
	}
	if err := u.describe(ctx, d, c, old.id != 0); err != nil {
		return err
	}
	u.add(d, 1)
	return nil
}

// describe writes the row of a document.
func (u *updater) describe(ctx context.Context, d stored, c *Change, known bool) error {
	insert := insertDocument
	if known {
		insert = updateDocument
	}
	var kind, title string
	if c.Document != nil {
		kind, title = c.Document.Type, c.Document.Title
	}
	sum := sha256.Sum256([]byte(u.path + "\x00" + c.Path))
	key := int64(binary.BigEndian.Uint64(sum[:8]))
	s := c.Stamp
	return u.exec(ctx, insert, u.folder, c.Path, key, s.Size, s.ModTime.UnixNano(), s.Hash[:], s.Skipped,
		kind, title, d.bytes, d.chunks, d.pieces, d.id)
}

// INSERT OR REPLACE would begin a savepoint for each document, and FTS5 writes what it
// has gathered to the disk at every savepoint.
const (
	insertDocument = `INSERT INTO document (folder, path, key, size, modified, hash, skipped,
		type, title, bytes, chunks, pieces, id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateDocument = `UPDATE document SET folder = ?, path = ?, key = ?, size = ?, modified = ?, hash = ?, skipped = ?,
		type = ?, title = ?, bytes = ?, chunks = ?, pieces = ?, embedded = 0 WHERE id = ?`
)

func (u *updater) newID(ctx context.Context) (int64, error) {
	if u.last == 0 {
		low, high := u.folder<<folderShift, (u.folder+1)<<folderShift-1
		err := u.tx.QueryRowContext(ctx, "SELECT coalesce(max(id), ?) FROM document WHERE id BETWEEN ? AND ?", low, low, high).Scan(&u.last)
		if err != nil {
			return 0, err
		}
	}
	u.last++
	if u.last>>folderShift != u.folder {
		return 0, fmt.Errorf("the folder has more than %d files", maxFiles)
	}
	return u.last, nil
}

// drop deletes a document.
func (u *updater) drop(ctx context.Context, d stored) error {
	if err := u.clear(ctx, d); err != nil {
		return err
	}
	return u.exec(ctx, "DELETE FROM document WHERE id = ?", d.id)
}

// remove deletes the document with the id; its folder is going and counts no more.
func (u *updater) remove(ctx context.Context, id int64) error {
	d := stored{id: id}
	s, err := u.prepared(ctx, "SELECT pieces FROM document WHERE id = ?")
	if err != nil {
		return err
	}
	if err := s.QueryRowContext(ctx, id).Scan(&d.pieces); err != nil {
		return err
	}
	return u.drop(ctx, d)
}

// clear deletes all of a document but its row.
func (u *updater) clear(ctx context.Context, d stored) error {
	u.add(d, -1)
	for i := range d.pieces {
		row := d.id<<pieceShift | i
		if err := u.exec(ctx, "DELETE FROM words WHERE rowid = ?", row); err != nil {
			return err
		}
		if err := u.exec(ctx, "DELETE FROM piece WHERE id = ?", row); err != nil {
			return err
		}
		u.lists.Remove(row)
	}
	if u.vectors && d.pieces > 0 {
		return u.clearVectors(ctx, d.id)
	}
	return nil
}

// add counts a document, or with -1 one less. A skipped file has no pieces and is none.
func (u *updater) add(d stored, sign int64) {
	if d.pieces > 0 {
		u.documents += sign
	}
	u.chunks += sign * d.chunks
	u.pieces += sign * d.pieces
	u.bytes += sign * d.bytes
}

// count writes what add has counted.
func (u *updater) count(ctx context.Context) error {
	return u.exec(ctx, "UPDATE folder SET documents = documents + ?, chunks = chunks + ?, pieces = pieces + ?, bytes = bytes + ? WHERE id = ?",
		u.documents, u.chunks, u.pieces, u.bytes, u.folder)
}
