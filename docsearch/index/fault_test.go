package index_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

func TestDamagedFileIsMovedAside(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"garbage":   func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("garbage ", 1000)), 0o600) },
		"short":     func(p string) error { return os.WriteFile(p, []byte("SQLite"), 0o600) },
		"cut off":   func(p string) error { return os.Truncate(p, 20_000) },
		"directory": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"schema":    func(p string) error { return overwrite(p, 100, 4000) },
		"version":   func(p string) error { return overwrite(p, 60, 4) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.db")
			x := openAt(t, path, index.Options{})
			update(t, x, text("a.txt", strings.Repeat("apple pear ", 10_000)))
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			x = openAt(t, path, index.Options{})
			if x.Rebuilt() == "" {
				t.Error("not rebuilt")
			}
			if aside, _ := filepath.Glob(path + ".corrupt-*"); len(aside) == 0 {
				t.Error("the old file is gone")
			}
			update(t, x, text("a.txt", "apple"))
			if got := found(t, x, "apple"); got != "[a.txt]" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// overwrite writes n bytes of 0x5a at offset at.
func overwrite(path string, at int64, n int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(strings.Repeat("Z", n)), at)
	return errors.Join(err, f.Close())
}

func TestDamageFoundLaterIsRepairedByOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := openAt(t, path, index.Options{})
	var changes []index.Change
	for i := range 100 {
		changes = append(changes, text(fmt.Sprint(i, ".txt"), strings.Repeat(fmt.Sprint("apple", i, " "), 2000)))
	}
	update(t, x, changes...)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := overwrite(path, fi.Size()/2, int(fi.Size()/2)); err != nil {
		t.Fatal(err)
	}
	x = openAt(t, path, index.Options{})
	if x.Rebuilt() != "" {
		t.Fatalf("Open found the damage: %s", x.Rebuilt())
	}
	for i := range 100 {
		if _, err = x.Search(t.Context(), index.Query{Text: fmt.Sprint("apple", i)}); err != nil {
			break
		}
	}
	if !errors.Is(err, index.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	x.Close()
	if x = openAt(t, path, index.Options{}); x.Rebuilt() == "" {
		t.Error("not rebuilt")
	}
}

func TestIntactFileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := openAt(t, path, index.Options{})
	update(t, x, text("a.txt", "apple"))
	x.Close()
	x = openAt(t, path, index.Options{})
	if got := found(t, x, "apple"); got != "[a.txt]" || x.Rebuilt() != "" {
		t.Errorf("got %s, rebuilt %q", got, x.Rebuilt())
	}
}

func TestFullDiskLosesNothing(t *testing.T) {
	x := open(t, index.WithMaxPages(index.Options{}, 100))
	update(t, x, text("a.txt", "apple"))
	err := x.Update(t.Context(), folder, []index.Change{
		text("b.txt", "apple"), text("big.txt", strings.Repeat("apple pear plum ", 100_000)), text("c.txt", "apple"),
	})
	if !errors.Is(err, index.ErrDiskFull) {
		t.Fatalf("got %v, want ErrDiskFull", err)
	}
	if got := found(t, x, "apple"); got != "[a.txt]" {
		t.Errorf("got %s", got)
	}
	update(t, x, text("b.txt", "apple"))
	if got := found(t, x, "apple"); got != "[a.txt b.txt]" {
		t.Errorf("after more: got %s", got)
	}
}

func TestSearchDuringUpdateSeesOneState(t *testing.T) {
	x := open(t, index.Options{})
	state := func(word string) []index.Change {
		var changes []index.Change
		for i := range 30 {
			changes = append(changes, text(fmt.Sprint(i, ".txt"), word+strings.Repeat(" filler", 500)))
		}
		return changes
	}
	update(t, x, state("even")...)
	ctx, stop := context.WithCancel(t.Context())
	var searches sync.WaitGroup
	for range 3 {
		searches.Go(func() {
			for ctx.Err() == nil {
				r, err := x.Search(t.Context(), index.Query{Text: "even odd", Limit: 100})
				if err != nil {
					t.Error(err)
					return
				}
				words := map[bool]int{}
				for _, res := range r.Results {
					words[strings.Contains(res.Snippet, "even")]++
				}
				if len(r.Results) != 30 || len(words) != 1 {
					t.Errorf("%d results, %v", len(r.Results), words)
				}
			}
		})
	}
	for i := range 10 {
		update(t, x, state([]string{"odd", "even"}[i%2])...)
	}
	stop()
	searches.Wait()
}

func TestCloseWaitsAndRefuses(t *testing.T) {
	x := open(t, index.Options{})
	update(t, x, text("a.txt", "apple"))
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := x.Search(t.Context(), index.Query{Text: "apple"}); err != nil && !errors.Is(err, index.ErrClosed) {
				t.Error(err)
			}
		})
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	calls.Wait()
	for name, err := range map[string]error{
		"Update":       x.Update(t.Context(), folder, nil),
		"AddFolder":    x.AddFolder(t.Context(), "/x"),
		"Complete":     x.Complete(t.Context(), folder, time.Now()),
		"RemoveFolder": x.RemoveFolder(t.Context(), folder),
	} {
		if !errors.Is(err, index.ErrClosed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCancelledUpdateChangesNothing(t *testing.T) {
	x := open(t, index.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Update(ctx, folder, []index.Change{text("a.txt", "apple")}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := found(t, x, "apple"); got != "[]" {
		t.Errorf("got %s", got)
	}
}
