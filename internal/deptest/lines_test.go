package deptest

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 120
	tabColumns = 4
)

// Lines of code and comments end at column 120. Raw strings, such as the tags of structs, stay whole, and so do
// directives, which have no other form.
func TestLinesFit(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range longLines(text) {
			t.Errorf("%s:%d is longer than %d columns", strings.TrimPrefix(path, "../../"), line, maxColumns)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 400 {
		t.Errorf("%d files were found, want at least 400", files)
	}
}

// longLines returns the numbers of the lines that are too long without their raw strings.
func longLines(text []byte) (long []int) {
	for i, line := range strings.Split(withoutRawStrings(text), "\n") {
		columns := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
		if columns > maxColumns && !strings.HasPrefix(strings.TrimSpace(line), "//lint:") {
			long = append(long, i+1)
		}
	}
	return long
}

// withoutRawStrings returns a file in which raw strings have no letters, but the line breaks that they had.
func withoutRawStrings(text []byte) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	var left strings.Builder
	done := 0
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			break
		}
		if kind == token.STRING && literal[0] == '`' {
			at := file.Offset(pos)
			left.Write(text[done:at])
			left.WriteString(strings.Repeat("\n", strings.Count(literal, "\n")))
			done = at + len(literal)
		}
	}
	left.Write(text[done:])
	return left.String()
}

func TestLongLinesAreFound(t *testing.T) {
	x := strings.Repeat("x", maxColumns)
	for text, want := range map[string]int{
		"package p // " + x: 1, "package p\n\nvar s = `" + x + "`": 0, "package p\n\nvar s = `\n" + x + "`": 0,
		"package p\n\nvar s = `\n` + `" + x + "` // " + x: 1, "package p\n\n//lint:ignore " + x: 0,
		"package p\n\n// " + strings.Repeat("…", maxColumns-3): 0, "package p\n\n//\t" + x[5:]: 1,
	} {
		if got := len(longLines([]byte(text))); got != want {
			t.Errorf("%q: got %d long lines, want %d", text, got, want)
		}
	}
}
