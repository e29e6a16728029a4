package database

import (
	"context"
	"database/sql"
	"fmt"
)

// schemaVersion is kept in user_version. A file with another one is made anew: it only
// repeats what the folders say.
const schemaVersion = 2

// document.chunks and .pieces are 0 if the file was skipped. words has the terms of a
// piece as weigher makes them; it keeps neither text nor positions. vector has one row for
// each text that a chunk of a folder has or had; vec0 keeps the numbers in a table that
// is made when their count is known.
const schema = `
CREATE TABLE folder (
	id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
	documents INTEGER NOT NULL DEFAULT 0, chunks INTEGER NOT NULL DEFAULT 0,
	pieces INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
	indexed INTEGER NOT NULL DEFAULT 0, going INTEGER NOT NULL DEFAULT 0);
CREATE TABLE document (
	id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, path TEXT NOT NULL, key INTEGER NOT NULL,
	size INTEGER NOT NULL, modified INTEGER NOT NULL, hash BLOB NOT NULL, skipped TEXT NOT NULL,
	type TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '', bytes INTEGER NOT NULL DEFAULT 0,
	chunks INTEGER NOT NULL DEFAULT 0, pieces INTEGER NOT NULL DEFAULT 0,
	embedded INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX document_path ON document (folder, path);
CREATE INDEX document_key ON document (key);
CREATE INDEX document_skipped ON document (folder, skipped) WHERE skipped <> '';
CREATE INDEX document_missing ON document (id) WHERE embedded = 0 AND pieces > 0;
CREATE TABLE piece (
	id INTEGER PRIMARY KEY, start INTEGER NOT NULL, own INTEGER NOT NULL,
	chunks BLOB NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (
	term, content = '', contentless_delete = 1, detail = none,
	tokenize = "ascii tokenchars '_'");
INSERT INTO words (words, rank) VALUES ('hashsize', 33554432);
CREATE TABLE vector (id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, hash BLOB NOT NULL, UNIQUE (folder, hash));
CREATE TABLE chunk_vector (
	piece INTEGER, chunk INTEGER, vector INTEGER NOT NULL, PRIMARY KEY (piece, chunk)) WITHOUT ROWID;
CREATE INDEX chunk_vector_vector ON chunk_vector (vector);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO setting (name, value) VALUES ('generation', '1');
`

// prepare creates the tables of a new file. It returns why the file cannot be used, or "".
func prepare(ctx context.Context, db *sql.DB) (unusable string, err error) {
	var version, tables int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return "", err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return "", err
	}
	switch {
	case version == schemaVersion:
		return "", nil
	case version > schemaVersion:
		return fmt.Sprintf("a newer version of docsearch wrote it (%d, not %d)", version, schemaVersion), nil
	case version != 0 || tables != 0:
		return fmt.Sprintf("it is not an index of this version (%d, not %d)", version, schemaVersion), nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return "", err
	}
	return "", tx.Commit()
}
