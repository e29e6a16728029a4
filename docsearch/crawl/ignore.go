package crawl

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// The names of the files with patterns, the strongest last.
var ignoreFiles = []string{".gitignore", ".docsearchignore"}

// Limits of the patterns that apply in a directory: its own and those of the directories
// above. A directory beyond them is not entered: it may have what should be ignored. A
// path is compared with all patterns: 2 ms for as many as fit, 20 ms for the slowest.
const (
	maxIgnoreBytes = 256 << 10 // of one file
	maxPatterns    = 10_000
	maxGlobBytes   = 32 << 10 // of the patterns with wildcards
)

// vcsDirs are the directories of version control systems, which are never entered.
var vcsDirs = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".bzr": true, ".jj": true, "CVS": true, "_darcs": true,
}

// pattern is one line of a .gitignore.
type pattern struct {
	glob     string // of doublestar, or a literal
	literal  bool
	anchored bool // matches the whole path below the directory, not its last part
	dirOnly  bool
	negated  bool
}

// rules are the patterns that apply in a directory: its own, then those of its parents.
type rules struct {
	parent   *rules
	dir      string // slash path, "." for the folder itself
	patterns []pattern

	total, globBytes int // of all that apply
}

// add adds the patterns of a file. It fails if they are beyond the limits.
func (r *rules) add(data []byte) error {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for line := range strings.Lines(string(data)) {
		p, ok := parsePattern(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		if !ok {
			continue
		}
		r.patterns = append(r.patterns, p)
		r.total++
		if !p.literal {
			r.globBytes += len(p.glob)
		}
	}
	switch {
	case r.total > maxPatterns:
		return fmt.Errorf("and those above have more than %d patterns", maxPatterns)
	case r.globBytes > maxGlobBytes:
		return fmt.Errorf("and those above have more than %d bytes of patterns with wildcards", maxGlobBytes)
	}
	return nil
}

// ignores reports whether the entry at a path is ignored, by the last pattern that
// matches it of the nearest directory that has one. It does not look at the directories
// that the entry is in: the walk does not enter those that are ignored.
func (r *rules) ignores(rel string, isDir bool) bool {
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	for ; r != nil; r = r.parent {
		below := rel
		if r.dir != "." {
			below = rel[len(r.dir)+1:]
		}
		for i := len(r.patterns) - 1; i >= 0; i-- {
			if p := &r.patterns[i]; p.matches(below, name, isDir) {
				return !p.negated
			}
		}
	}
	return false
}

func (p *pattern) matches(below, name string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	subject := name
	if p.anchored {
		subject = below
	}
	if p.literal {
		return p.glob == subject
	}
	return doublestar.MatchUnvalidated(p.glob, subject)
}

// parsePattern parses one line. It returns false for a line without a pattern.
func parsePattern(line string) (p pattern, ok bool) {
	line = trimSpaces(line)
	if line == "" || line[0] == '#' {
		return p, false
	}
	if line[0] == '!' {
		p.negated, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly, line = true, line[:len(line)-1]
	}
	p.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	p.literal = !strings.ContainsAny(line, `*?[\`)
	p.glob = line
	if !p.literal {
		p.glob = globOf(line)
	}
	return p, true
}

// trimSpaces removes the spaces at the end that no backslash escapes.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	escapes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if escapes%2 == 1 && len(trimmed) < len(line) {
		return line[:len(trimmed)+1]
	}
	return trimmed
}

// globOf translates a pattern of git to one of doublestar, which knows alternatives in
// braces but no classes of characters by name, and whose trailing ** matches nothing,
// too.
func globOf(line string) string {
	glob := globSyntax.Replace(line)
	if strings.HasSuffix(glob, "/**") {
		glob += "/*"
	}
	return glob
}

var globSyntax = strings.NewReplacer(
	`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, // stay as they are
	`{`, `\{`, `}`, `\}`,
	`[]`, `[\]`, `[!]`, `[!\]`, `[^]`, `[^\]`, // ] is itself where it comes first
	`[:alnum:]`, `a-zA-Z0-9`, `[:alpha:]`, `a-zA-Z`, `[:blank:]`, " \t", `[:digit:]`, `0-9`,
	`[:lower:]`, `a-z`, `[:space:]`, " \t\n\r\f\v", `[:upper:]`, `A-Z`, `[:xdigit:]`, `0-9a-fA-F`,
)
