package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/postings"
)

// FolderStats describes what the index has of a folder.
type FolderStats struct {
	Path              string
	Documents, Chunks int
	TextBytes         int64
	IndexedAt         time.Time      // when it was last complete; zero: never
	Skipped           map[string]int // number of files by the reason why they are not indexed
}

// Stats describes the whole index.
type Stats struct {
	Documents, Chunks    int
	TextBytes, FileBytes int64
	Vectors              int // number of chunks that have a vector
}

// maxFolders bounds the number of a folder, which is part of ids.
const maxFolders = 1 << (62 - folderShift - pieceShift)

// AddFolder adds a folder, empty. Adding it again changes nothing.
func (x *Index) AddFolder(ctx context.Context, path string) error {
	return x.change(ctx, "add folder", func(tx *sql.Tx) error {
		var last int64
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM folder").Scan(&last); err != nil {
			return err
		}
		if last >= maxFolders {
			return errors.New("the index has had too many folders; remove its file")
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO folder (id, path) VALUES (?, ?) ON CONFLICT (path) DO NOTHING", last+1, path)
		return err
	})
}

// removeBatch is how many documents RemoveFolder deletes in one transaction.
const removeBatch = 200

// RemoveFolder removes a folder and all that was indexed of it. When it returns, nothing
// of it is found. The documents go in the background, in small transactions, between
// which others can write; if Close comes before, the next Open goes on.
func (x *Index) RemoveFolder(ctx context.Context, path string) error {
	folder, err := x.hide(ctx, path)
	if err != nil {
		return err
	}
	if err := x.enter(); err != nil {
		return nil // the next Open deletes the documents
	}
	go func() { // Close waits for it
		defer x.calls.Done()
		x.purgeAll([]int64{folder})
	}()
	return nil
}

// hide takes a folder out of searches and lists. Its path is free for a new one.
func (x *Index) hide(ctx context.Context, path string) (folder int64, err error) {
	err = x.change(ctx, "remove folder", func(tx *sql.Tx) error {
		if folder, err = folderID(ctx, tx, path); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE folder SET going = 1, path = ? WHERE id = ?", fmt.Sprint("\x00", folder), folder)
		return err
	})
	return folder, err
}

// purge deletes the documents of a folder that is going, and the folder.
func (x *Index) purge(ctx context.Context, folder int64) error {
	for left := true; left; {
		err := x.changePieces(ctx, "remove folder", func(tx *sql.Tx, c *postings.Change) error {
			ids, err := queryAll[int64](ctx, tx, "SELECT id FROM document WHERE id BETWEEN ? AND ? LIMIT ?",
				folder<<folderShift, (folder+1)<<folderShift-1, removeBatch)
			if err != nil {
				return err
			}
			u := updater{tx: tx, folder: folder, lists: c, vectors: x.vectors.ready()}
			for _, id := range ids {
				if err := u.remove(ctx, id); err != nil {
					return err
				}
			}
			if left = len(ids) == removeBatch; left {
				return nil
			}
			if u.vectors {
				if left, err = u.removeVectors(ctx); err != nil || left {
					return err
				}
			}
			_, err = tx.ExecContext(ctx, "DELETE FROM folder WHERE id = ?", folder)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// resume goes on with removals that did not end, in the background until Close.
func (x *Index) resume(ctx context.Context) error {
	var going []int64
	err := x.view(ctx, "find folders to remove", func(tx *sql.Tx) (err error) {
		going, err = queryAll[int64](ctx, tx, "SELECT id FROM folder WHERE going = 1")
		return err
	})
	if err != nil || len(going) == 0 {
		return err
	}
	x.calls.Go(func() { x.purgeAll(going) })
	return nil
}

// purgeAll purges folders until Close.
func (x *Index) purgeAll(going []int64) {
	for _, folder := range going {
		if err := x.purge(x.ended, folder); err != nil && x.ended.Err() == nil {
			x.log.Error("folder not removed", "err", err)
			return
		}
	}
}

// Folders returns the folders in the order of their paths.
func (x *Index) Folders(ctx context.Context) (all []FolderStats, err error) {
	err = x.view(ctx, "list folders", func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT id, path, documents, chunks, bytes, indexed
			FROM folder WHERE going = 0 ORDER BY path`)
		if err != nil {
			return err
		}
		defer rows.Close()
		at := map[int64]int{}
		for rows.Next() {
			var f FolderStats
			var id, indexed int64
			if err := rows.Scan(&id, &f.Path, &f.Documents, &f.Chunks, &f.TextBytes, &indexed); err != nil {
				return err
			}
			if indexed != 0 {
				f.IndexedAt = time.Unix(0, indexed)
			}
			at[id] = len(all)
			all = append(all, f)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return skipped(ctx, tx, func(folder int64, reason string, n int) {
			if i, ok := at[folder]; ok {
				if all[i].Skipped == nil {
					all[i].Skipped = map[string]int{}
				}
				all[i].Skipped[reason] = n
			}
		})
	})
	return all, err
}

// skipped counts the skipped files.
func skipped(ctx context.Context, tx *sql.Tx, f func(folder int64, reason string, n int)) error {
	rows, err := tx.QueryContext(ctx, "SELECT folder, skipped, count(*) FROM document WHERE skipped <> '' GROUP BY folder, skipped")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var folder int64
		var reason string
		var n int
		if err := rows.Scan(&folder, &reason, &n); err != nil {
			return err
		}
		f(folder, reason, n)
	}
	return rows.Err()
}

// Complete records that a folder was indexed whole at that time.
func (x *Index) Complete(ctx context.Context, folder string, at time.Time) error {
	err := x.change(ctx, "complete folder", func(tx *sql.Tx) error {
		id, err := folderID(ctx, tx, folder)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE folder SET indexed = ? WHERE id = ?", at.UnixNano(), id)
		return err
	})
	if err == nil {
		x.loadAhead() // many changes since the last time forget lists
	}
	return err
}

// Stats returns the sizes of the index.
func (x *Index) Stats(ctx context.Context) (s Stats, err error) {
	err = x.view(ctx, "measure index", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(documents), 0), coalesce(sum(chunks), 0), coalesce(sum(bytes), 0)
			FROM folder WHERE going = 0`).Scan(&s.Documents, &s.Chunks, &s.TextBytes)
		if err != nil {
			return err
		}
		s.Vectors, err = x.countVectors(ctx, tx)
		return err
	})
	if err != nil {
		return Stats{}, err
	}
	s.FileBytes = x.db.Bytes()
	return s, nil
}

func folderID(ctx context.Context, tx *sql.Tx, path string) (id int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT id FROM folder WHERE path = ? AND going = 0", path).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: %s", ErrNoFolder, path)
	}
	return id, err
}

// queryAll returns the only column of a query.
func queryAll[T any](ctx context.Context, tx *sql.Tx, query string, args ...any) (all []T, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
