package docstest_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
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
	if err != nil {
		t.Fatal(err)
	}
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

func TestReadmeIsShort(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if got, most := strings.Count(string(data), "\n"), 160; got > most {
		t.Errorf("README.md has %d lines, want at most %d", got, most)
	}
}

const maxProse = 100 // characters in a line

var (
	listMarker  = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	unbreakable = regexp.MustCompile("`[^`]*`|\\[[^]]*\\](\\([^)]*\\)|: .*)")
)

// TestProseLinesAreShort checks the length of all lines but headings, tables, code
// blocks and lines that cannot be broken.
func TestProseLinesAreShort(t *testing.T) {
	for _, p := range pages(t) {
		inList := false
		for i, line := range p.prose {
			marker := listMarker.FindString(line)
			if marker != "" || line != "" && line[0] != ' ' {
				inList = marker != ""
			}
			indented := strings.HasPrefix(line, "    ") && !inList // a code block
			if indented || strings.HasPrefix(line, "#") || strings.HasPrefix(strings.TrimSpace(line), "|") {
				continue
			}
			text := strings.TrimSpace(strings.TrimPrefix(line, marker))
			breakable := strings.Contains(unbreakable.ReplaceAllString(text, ""), " ")
			if n := utf8.RuneCountInString(line); n > maxProse && breakable {
				t.Errorf("%s:%d: line of %d characters, want at most %d", p.path, i+1, n, maxProse)
			}
		}
	}
}

var (
	flagName = regexp.MustCompile(`--(\[no-\])?([a-z][a-z0-9-]*)`)
	command  = regexp.MustCompile(`^\$?\s*(?:sse-server|bin/sse-server|go run \./cmd/sse-server)(?:\s+(.*))?$`)
)

var shells = map[string]bool{"sh": true, "shell": true, "bash": true, "console": true}

// TestFlagsExist checks the flags of sse-server in shell blocks against its
// --help.
func TestFlagsExist(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/sse-server", "--help")
	cmd.Dir = root
	help, err := cmd.Output()
	if err != nil {
		t.Fatalf("go run ./cmd/sse-server --help: %v", err)
	}
	known := map[string]bool{}
	for _, m := range flagName.FindAllStringSubmatch(string(help), -1) {
		known[m[2]] = true
		if m[1] != "" {
			known["no-"+m[2]] = true
		}
	}
	checked := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if !shells[b.language] {
				continue
			}
			for i, line := range b.text {
				m := command.FindStringSubmatch(strings.TrimSpace(line))
				if m == nil {
					continue
				}
				checked++
				ours, _, _ := strings.Cut(" "+m[1]+" ", " -- ")
				for _, f := range flagName.FindAllStringSubmatch(ours, -1) {
					if !known[f[2]] {
						t.Errorf("%s:%d: sse-server has no flag --%s", p.path, b.line+1+i, f[2])
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no page shows sse-server in a shell block")
	}
}

// exampleFolders hold the code that Go blocks may show.
var exampleFolders = []string{"internal/docstest", "upstream", "gateway", "sse", "connstate", "handshake", "metrics"}

// TestGoBlocksAreExamples checks that each Go block of the pages is a piece of
// a test file, indentation aside.
func TestGoBlocksAreExamples(t *testing.T) {
	var files []string
	for _, folder := range exampleFolders {
		found, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, flatten(strings.Split(string(data), "\n")))
		}
	}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "go" || b.wholeProgram() {
				continue // TestWholeProgramsServe runs those
			}
			want, found := flatten(b.text), false
			for _, file := range files {
				found = found || strings.Contains(file, want)
			}
			if !found {
				t.Errorf("%s:%d: the Go block is not a piece of an example in %v", b.page, b.line, exampleFolders)
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
