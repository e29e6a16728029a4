package extract

import (
	"regexp"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// markdown returns the title and the headings of a text: those with # (ATX), and those
// underlined with = or - (setext), outside fenced code. The title is that of the front
// matter, or the first heading.
func markdown(text string) (title string, _ []Section) {
	title, body := frontMatter(text)
	scan := markdownScan{}
	var sections plain.Sections
	offset := len(text) - len(body)
	for line := range strings.Lines(body) {
		if heading, at := scan.line(strings.TrimRight(line, "\n"), offset); heading != "" {
			sections.Add(Section{Offset: at, Heading: heading})
		}
		if sections.Full() {
			break
		}
		offset += len(line)
	}
	if title == "" {
		title = sections.Title()
	}
	return title, sections.List
}

// markdownScan is the state between two lines.
type markdownScan struct {
	fence      string // that opened the code block, empty outside
	previous   string // the line before, if it is of a paragraph
	previousAt int
}

// line returns the heading that ends with this line and where it begins.
func (m *markdownScan) line(line string, offset int) (heading string, at int) {
	trimmed := strings.TrimSpace(line)
	indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
	previous, previousAt := m.previous, m.previousAt
	m.previous = ""
	switch {
	case m.fence != "":
		if strings.HasPrefix(trimmed, m.fence) && strings.Trim(trimmed, m.fence[:1]) == "" {
			m.fence = ""
		}
	case indented:
	case openingFence(trimmed) != "":
		m.fence = openingFence(trimmed)
	case strings.HasPrefix(trimmed, "#"):
		return atxHeading(trimmed), offset
	case previous != "" && isUnderline(trimmed):
		return inlineText(previous), previousAt
	case trimmed != "" && !strings.ContainsAny(trimmed[:1], ">-*+|<"):
		m.previous, m.previousAt = trimmed, offset
	}
	return "", 0
}

// openingFence returns the fence with which a line opens a block of code. Code within a
// line, such as ```ls```, opens none: else no heading below it would be found.
func openingFence(line string) string {
	for _, mark := range []string{"`", "~"} {
		info := strings.TrimLeft(line, mark)
		if n := len(line) - len(info); n >= 3 && (mark == "~" || !strings.Contains(info, mark)) {
			return line[:n]
		}
	}
	return ""
}

func atxHeading(line string) string {
	text := strings.TrimLeft(line, "#")
	if level := len(line) - len(text); level > 6 || text == "" || text[0] != ' ' && text[0] != '\t' {
		return ""
	}
	text = strings.TrimSpace(text)
	if closed := strings.TrimRight(text, "#"); closed == "" || strings.HasSuffix(closed, " ") {
		text = closed
	}
	return inlineText(text)
}

func isUnderline(line string) bool {
	return line != "" && (strings.Trim(line, "=") == "" || len(line) > 1 && strings.Trim(line, "-") == "")
}

var (
	markdownLink   = regexp.MustCompile(`!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])`)
	markdownMarker = strings.NewReplacer("**", "", "__", "", "*", "", "`", "")
	markdownAnchor = regexp.MustCompile(`\s*\{#[^{}]*\}$`)
)

// inlineText returns a heading without its markup.
func inlineText(s string) string {
	s = plain.OneLine(s)
	s = markdownAnchor.ReplaceAllString(s, "")
	s = markdownLink.ReplaceAllString(s, "$1")
	return strings.TrimSpace(markdownMarker.Replace(s))
}

// frontMatter splits off the YAML or TOML block that a file may begin with, and returns
// the title in it.
func frontMatter(text string) (title, body string) {
	const longest = 64 << 10
	fence, rest, _ := strings.Cut(text, "\n")
	fence = strings.TrimRight(fence, " \t")
	if fence != "---" && fence != "+++" {
		return "", text
	}
	offset := len(text) - len(rest)
	for line := range strings.Lines(rest) {
		offset += len(line)
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == fence, fence == "---" && trimmed == "...":
			return title, text[offset:]
		case offset > longest:
			return "", text
		case title == "" && strings.HasPrefix(line, "title"):
			title = frontMatterValue(trimmed)
		}
	}
	return "", text
}

// frontMatterValue returns the value of "title: value" or "title = value".
func frontMatterValue(line string) string {
	value := strings.TrimSpace(strings.TrimPrefix(line, "title"))
	if value == "" || value[0] != ':' && value[0] != '=' {
		return ""
	}
	return plain.OneLine(strings.Trim(strings.TrimSpace(value[1:]), `"'`))
}
