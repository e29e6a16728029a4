package docstest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const root = "../.."

// block is a fenced code block of a page.
type block struct {
	page, language string
	line           int // of the fence, from 1
	text           []string
}

// page is a Markdown file: its prose with code blocks left out, and the blocks.
type page struct {
	path   string // from the root, with slashes
	prose  []string
	blocks []block
}

// pages reads all Markdown files of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(all, parsePage(filepath.ToSlash(rel), string(data)))
		return nil
	})
	ssetest.Must(t, err)
	if len(all) < 10 {
		t.Fatalf("found %d pages, want the docs", len(all))
	}
	return all
}

func parsePage(path, data string) page {
	p := page{path: path}
	var open *block
	for i, line := range strings.Split(data, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			open = &block{page: path, language: strings.TrimPrefix(trimmed, "```"), line: i + 1}
		case open != nil && trimmed == "```":
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text = append(open.text, line)
		default:
			p.prose = append(p.prose, line)
			continue
		}
		p.prose = append(p.prose, "") // keeps the line numbers
	}
	return p
}

var (
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	scheme   = regexp.MustCompile(`^[a-z]+:`)
)

func TestLinksResolve(t *testing.T) {
	all := pages(t)
	anchors := make(map[string]map[string]bool)
	for _, p := range all {
		anchors[p.path] = headings(p)
	}
	for _, p := range all {
		for i, line := range p.prose {
			for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "``"), -1) {
				if scheme.MatchString(m[1]) {
					continue
				}
				file, anchor, _ := strings.Cut(m[1], "#")
				target := p.path
				if file != "" {
					target = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), file))
				}
				if _, err := os.Stat(filepath.Join(root, target)); err != nil {
					t.Errorf("%s:%d: link to %s: there is no such file", p.path, i+1, m[1])
				} else if known, isPage := anchors[target]; anchor != "" && isPage && !known[anchor] {
					t.Errorf("%s:%d: link to %s: the page has no such heading", p.path, i+1, m[1])
				}
			}
		}
	}
}

// headings returns the anchors that GitHub gives the headings of a page.
func headings(p page) map[string]bool {
	anchors := make(map[string]bool)
	for _, line := range p.prose {
		title := strings.TrimLeft(line, "#")
		if title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))
		anchors[anchor] = true
	}
	return anchors
}

var shells = map[string]bool{"sh": true, "shell": true, "bash": true, "console": true}

// exampleFiles hold the code that Go blocks may show.
var exampleFiles = []string{"internal/docstest/*_test.go", "*/example_test.go", "examples/*/main.go"}

// TestGoBlocksAreExamples checks that each Go block of the pages is a piece of
// an example or a test, indentation aside.
func TestGoBlocksAreExamples(t *testing.T) {
	var files []string
	for _, pattern := range exampleFiles {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		ssetest.Must(t, err)
		for _, name := range found {
			data, err := os.ReadFile(name)
			ssetest.Must(t, err)
			files = append(files, flatten(strings.Split(string(data), "\n")))
		}
	}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "go" {
				continue
			}
			want, found := flatten(b.text), false
			for _, file := range files {
				found = found || strings.Contains(file, want)
			}
			if !found {
				t.Errorf("%s:%d: the Go block is not a piece of %v", b.page, b.line, exampleFiles)
			}
		}
	}
}

// flatten makes code comparable: indentation and blank lines do not count.
func flatten(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
