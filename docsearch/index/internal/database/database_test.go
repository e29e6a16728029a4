package database

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the file, which must be usable.
func open(t *testing.T, path string) *Database {
	t.Helper()
	d, unusable, err := Open(t.Context(), path, 0)
	if err != nil || unusable != "" {
		t.Fatalf("open: %q, %v", unusable, err)
	}
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// addFolder changes the file.
func addFolder(tx *sql.Tx) error {
	_, err := tx.Exec("INSERT INTO folder (path) VALUES ('/a')")
	return err
}

func TestChangesAreSeenAfterwards(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	d := open(t, path)
	must(t, d.Change(t.Context(), addFolder))
	failure := errors.New("failure")
	err := d.Change(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("DELETE FROM folder")
		return errors.Join(err, failure)
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want the error of the function", err)
	}
	if d.Bytes() == 0 {
		t.Error("the file is empty")
	}
	must(t, d.Close())
	d = open(t, path)
	defer d.Close()
	folders := 0
	must(t, d.View(t.Context(), func(tx *sql.Tx) error { return tx.QueryRow("SELECT count(*) FROM folder").Scan(&folders) }))
	if folders != 1 {
		t.Errorf("%d folders, want 1", folders)
	}
	if err := d.View(t.Context(), addFolder); Classify(err) != ErrReadOnly {
		t.Errorf("a change by a reader: got %v", err)
	}
}

func TestEndOfAContextIsTheReason(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "index.db"))
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err := d.Change(ctx, func(*sql.Tx) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestFileThatCannotGrow(t *testing.T) {
	d, _, err := Open(t.Context(), filepath.Join(t.TempDir(), "index.db"), 60)
	must(t, err)
	defer d.Close()
	err = d.Change(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO folder (path) VALUES (?)", strings.Repeat("a", 1<<20))
		return err
	})
	if Classify(err) != ErrFull {
		t.Errorf("got %v, want %v", err, ErrFull)
	}
}

func TestUnusableFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(path string, d *Database) error // after it was closed
		want  string
	}{
		"garbage": {func(p string, _ *Database) error {
			return os.WriteFile(p, []byte(strings.Repeat("garbage ", 1000)), 0o600)
		}, "not a SQLite file"},
		"cut off":   {func(p string, _ *Database) error { return os.Truncate(p, 20_000) }, "cut off at 20000 bytes"},
		"directory": {func(p string, _ *Database) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }, "not a regular file"},
		"marked":    {func(_ string, d *Database) error { return d.MarkDamaged() }, "found to be damaged"},
		"newer":     {setVersion(schemaVersion + 1), "a newer version"},
		"older":     {setVersion(schemaVersion - 1), "not an index of this version"},
		"other":     {setVersion(0), "not an index of this version"},
		"empty":     {func(p string, _ *Database) error { return os.Truncate(p, 0) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.db")
			d := open(t, path)
			must(t, d.Close())
			must(t, tc.spoil(path, d))
			d, unusable, err := Open(t.Context(), path, 0)
			must(t, err)
			if d != nil {
				must(t, d.Close())
			}
			if (d == nil) != (tc.want != "") || !strings.Contains(unusable, tc.want) {
				t.Fatalf("got %v, %q, want %q", d, unusable, tc.want)
			}
			must(t, MoveAside(path))
			must(t, open(t, path).Close())
			if aside, _ := filepath.Glob(path + ".corrupt-*"); len(aside) == 0 {
				t.Error("the old file is gone")
			}
		})
	}
}

func setVersion(n int) func(path string, d *Database) error {
	return func(path string, _ *Database) error {
		db, err := connect(path, 0, false)
		if err != nil {
			return err
		}
		_, err = db.Exec("PRAGMA user_version = " + string(rune('0'+n)))
		return errors.Join(err, db.Close())
	}
}

func TestDamagedPagesAreFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	must(t, open(t, path).Close())
	data, err := os.ReadFile(path)
	must(t, err)
	copy(data[100:], strings.Repeat("Z", 4000))
	must(t, os.WriteFile(path, data, 0o600))
	if _, _, err := Open(t.Context(), path, 0); Classify(err) != ErrCorrupt {
		t.Errorf("got %v, want %v", err, ErrCorrupt)
	}
}
