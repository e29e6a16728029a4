package index_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// files returns the files of an index with that ending.
func files(t *testing.T, dir, ending string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(path, ending) {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("no file *%s, %v", ending, err)
	}
	return all
}

// overwrite writes n bytes at offset at.
func overwrite(path string, at int64, n int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(strings.Repeat("Z", n)), at)
	return errors.Join(err, f.Close())
}

// build makes an index with some documents in shared, once.
var build = sync.OnceValue(func() error {
	x, err := index.Open(context.Background(), filepath.Join(shared, "index"), index.Options{})
	if err != nil {
		return err
	}
	var changes []index.Change
	for n := range 50 {
		changes = append(changes, text(fmt.Sprint(n, ".txt"), strings.Repeat(fmt.Sprintf("apple%c%cx pear ", 'a'+n/26, 'a'+n%26), 300)))
	}
	return errors.Join(x.AddFolder(folder), x.Update(context.Background(), folder, changes), x.Close())
})

// filled returns the directory of an index with some documents, which is closed.
func filled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := errors.Join(build(), os.CopyFS(dir, os.DirFS(shared))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "index")
}

// searched returns the first error of searches for all that filled has indexed.
func searched(t *testing.T, x *index.Index) error {
	for n := range 50 {
		r, err := x.Search(t.Context(), index.Query{Text: fmt.Sprintf("apple%c%cx", 'a'+n/26, 'a'+n%26)})
		if err != nil {
			return err
		}
		if len(r.Results) != 1 {
			return fmt.Errorf("%d results", len(r.Results))
		}
		if _, err := x.Document(r.Results[0].DocumentID, 0, 9); err != nil {
			return err
		}
	}
	return nil
}

// Whatever becomes of its files while it is closed, an index is found damaged when it is
// opened or read, and made anew.
func TestDamagedIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	each := func(ending string, damage func(path string) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, path := range files(t, dir, ending) {
				if err := damage(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	size := func(path string) int64 {
		info, _ := os.Stat(path)
		return info.Size()
	}
	for name, damage := range map[string]func(*testing.T, string){
		"garbage":          each("", func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("garbage ", 1000)), 0o600) }),
		"empty files":      each("", func(p string) error { return os.Truncate(p, 0) }),
		"segments cut off": each(".zap", func(p string) error { return os.Truncate(p, size(p)/2) }),
		"segments removed": each(".zap", os.Remove),
		"segments changed": each(".zap", func(p string) error { return overwrite(p, 0, int(size(p)/2)) }),
		"root cut off":     each(".bolt", func(p string) error { return os.Truncate(p, 5000) }),
		"root removed":     each(".bolt", os.Remove),
		"root changed":     each(".bolt", func(p string) error { return overwrite(p, 4096, int(size(p)-4096)) }),
		"meta removed":     each("_meta.json", os.Remove),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filled(t)
			damage(t, dir)
			x := openAt(t, dir, index.Options{})
			if x.Rebuilt() == "" {
				if err := searched(t, x); !errors.Is(err, index.ErrCorrupt) {
					t.Errorf("got %v, want ErrCorrupt", err)
				}
				x.Close()
				x = openAt(t, dir, index.Options{})
			}
			if x.Rebuilt() == "" {
				t.Error("not rebuilt")
			}
			if aside, _ := filepath.Glob(filepath.Join(dir, "*.corrupt-*")); len(aside) != 1 {
				t.Errorf("moved aside: %v", aside)
			}
			update(t, x, text("a.txt", "apple"))
			if got := found(t, x, "apple"); got != "[a.txt]" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Damage while the index is open is no reason to crash.
func TestDamageWhileOpen(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	x := openAt(t, dir, index.Options{})
	if err := searched(t, x); err != nil {
		t.Fatal(err)
	}
	for _, path := range files(t, dir, ".zap") {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := searched(t, x); !errors.Is(err, index.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	x.Close()
	if x = openAt(t, dir, index.Options{}); x.Rebuilt() == "" {
		t.Error("not rebuilt")
	}
}

// Bleve goes back to an older state if it cannot read the last one. While the index is
// open, that is damage too.
func TestOlderStateWhileOpen(t *testing.T) {
	t.Parallel()
	older := filepath.Join(t.TempDir(), "index")
	if err := openAt(t, older, index.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	dir := filled(t)
	x := openAt(t, dir, index.Options{})
	if err := os.Rename(files(t, older, ".bolt")[0], files(t, dir, ".bolt")[0]); err != nil {
		t.Fatal(err)
	}
	for _, path := range files(t, dir, ".zap") {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := searched(t, x); !errors.Is(err, index.ErrCorrupt) {
			t.Errorf("got %v, want ErrCorrupt", err)
		}
	}
	x.Close()
	if x = openAt(t, dir, index.Options{}); x.Rebuilt() == "" {
		t.Error("not rebuilt")
	}
}

// An index that is made anew has its folder, unless the path of that is lost too. An index
// that can be read knows it itself.
func TestFolderOutlivesItsIndex(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		words bool   // are damaged
		path  string // is written to the file with the path
		kept  bool
	}{{true, folder, true}, {true, "garbage", false}, {true, "", false}, {false, "garbage", true}} {
		dir := filled(t)
		own := filepath.Join(dir, index.DocumentID(folder, ""))
		err := os.WriteFile(filepath.Join(own, "path"), []byte(tc.path), 0o600)
		if tc.words {
			err = errors.Join(err, os.Remove(files(t, own, ".bolt")[0]))
		}
		x, wrong := index.Open(t.Context(), dir, index.Options{})
		if err = errors.Join(err, wrong); err != nil {
			t.Fatal(err)
		}
		all, err := x.Folders()
		if err != nil || len(all) == 1 != tc.kept || tc.kept && all[0].Path != folder {
			t.Errorf("%+v: got %+v, %v", tc, all, err)
		}
		if noted, _ := os.ReadFile(filepath.Join(own, "path")); tc.kept && string(noted) != folder {
			t.Errorf("%+v: the path is noted as %q", tc, noted)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An index that a killed process leaves is checked, and kept.
func TestIntactIndexIsKept(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	state := filepath.Join(dir, index.DocumentID(folder, ""), "state")
	for range 2 {
		x := openAt(t, dir, index.Options{})
		if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the state of an open index: %v", err)
		}
		if err := searched(t, x); err != nil || x.Rebuilt() != "" {
			t.Errorf("%v, rebuilt %q", err, x.Rebuilt())
		}
		if err := errors.Join(x.Close(), os.Remove(state)); err != nil {
			t.Error(err)
		}
	}
}

// A changed byte that no search has met yet is found when the process was killed.
func TestChecksumsAreCompared(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	if err := os.Remove(filepath.Join(dir, index.DocumentID(folder, ""), "state")); err != nil {
		t.Fatal(err)
	}
	if err := overwrite(files(t, dir, ".zap")[0], 100, 1); err != nil {
		t.Fatal(err)
	}
	if x := openAt(t, dir, index.Options{}); !strings.Contains(x.Rebuilt(), "checksum") {
		t.Errorf("rebuilt: %q", x.Rebuilt())
	}
}

// Another language needs another index.
func TestOtherLanguageIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	if x := openAt(t, dir, index.Options{Language: "de"}); !strings.Contains(x.Rebuilt(), "language") {
		t.Errorf("rebuilt: %q", x.Rebuilt())
	}
}

// An index of an older layout is made anew, by itself.
func TestOtherVersionIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	x := openAt(t, dir, index.Options{})
	if err := errors.Join(x.WriteVersion(folder, 3), x.Close()); err != nil {
		t.Fatal(err)
	}
	x = openAt(t, dir, index.Options{})
	if !strings.Contains(x.Rebuilt(), "version 3") {
		t.Errorf("rebuilt: %q", x.Rebuilt())
	}
	if stats, err := x.Folder(folder); err != nil || stats.Documents != 0 {
		t.Errorf("the folder has %d documents, %v, want it empty", stats.Documents, err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x := openAt(t, dir, index.Options{}); x.Rebuilt() != "" {
		t.Errorf("rebuilt again: %q", x.Rebuilt())
	}
}

func TestOnlyTheOwnerMayReadTheFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	openAt(t, dir, index.Options{})
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
