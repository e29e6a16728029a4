package crawl

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// The names of the files with patterns, the strongest last.
var ignoreFiles = []string{".gitignore", ".docsearchignore"}

// Limits of one file with patterns. The directory of one beyond them is not entered: it
// may have what should be ignored. A path is compared with all patterns, which takes up
// to 0.1 ms for the literal ones and 1 ms for the globs.
const (
	maxIgnoreBytes = 256 << 10
	maxPatterns    = 10_000
	maxGlobs       = 2_000 // of the patterns
	maxGlobBytes   = 512
	maxGlobStars   = 16 // each multiplies the ways to match
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

// parsePatterns returns the patterns of a file, or an error if they are beyond the
// limits.
func parsePatterns(data []byte) (patterns []pattern, err error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	globs := 0
	for line := range strings.Lines(string(data)) {
		p, ok := parsePattern(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		if !ok {
			continue
		}
		if !p.literal {
			globs++
		}
		switch {
		case len(patterns) == maxPatterns:
			return nil, fmt.Errorf("has more than %d patterns", maxPatterns)
		case globs > maxGlobs:
			return nil, fmt.Errorf("has more than %d patterns with wildcards", maxGlobs)
		case !p.literal && len(p.glob) > maxGlobBytes:
			return nil, fmt.Errorf("has a pattern of more than %d bytes with wildcards", maxGlobBytes)
		case !p.literal && strings.Count(p.glob, "*") > maxGlobStars:
			return nil, fmt.Errorf("has a pattern with more than %d stars", maxGlobStars)
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
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
