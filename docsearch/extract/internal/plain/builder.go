// Package plain builds the plain text of a document, from words and breaks, and the list
// of its sections.
package plain

import (
	"strings"
	"unicode"
)

// Builder builds text from words and breaks. It collapses white space, drops that at
// the ends of lines, and leaves at most one blank line. All of its text is clean.
type Builder struct {
	Sections

	b       strings.Builder
	space   bool // a space is due before the next word
	tabbed  bool // a tab is due before the next word
	newline int  // line ends that are due before the next word
	ended   int  // line ends that the text ends with
	page    int  // the number of the open page, 0 without pages
	sheets  bool // the headings are names of sheets
}

// Len returns the offset at which the next word begins. It writes the breaks that are
// due.
func (l *Builder) Len() int {
	l.breakLine()
	return l.b.Len()
}

// String returns the text.
func (l *Builder) String() string {
	if s := l.b.String(); s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return l.b.String() + "\n"
}

// Size returns the number of bytes written so far. Breaks that are due do not count.
func (l *Builder) Size() int { return l.b.Len() }

// Page begins a page, which is a section.
func (l *Builder) Page() {
	l.BlankLine()
	l.page++
	l.Add(Section{Offset: l.Len(), Page: l.page})
}

// Sheet begins a sheet of a spreadsheet, whose name is a heading.
func (l *Builder) Sheet(name string) {
	l.BlankLine()
	at := l.Len()
	l.Words(name)
	l.Heading(at)
	l.NewLine()
	l.sheets = true
}

// Title returns the first heading, which is the title of a document without one. The name
// of a sheet, such as Sheet1, is none.
func (l *Builder) Title() string {
	if l.sheets {
		return ""
	}
	return l.Sections.Title()
}

// Heading makes the text from offset, if there is any, the heading of a section, and
// returns it.
func (l *Builder) Heading(offset int) string {
	heading := OneLine(l.b.String()[min(offset, l.b.Len()):])
	switch last := len(l.List) - 1; {
	case heading == "":
	case last >= 0 && l.List[last].Offset == offset && !l.Full(): // it begins a page
		l.List[last].Heading = strings.Clone(heading)
	default:
		l.Add(Section{Offset: offset, Heading: heading, Page: l.page})
	}
	return heading
}

// NewLine ends the line, unless the text is empty.
func (l *Builder) NewLine() {
	if l.b.Len() > 0 {
		l.newline = max(l.newline, 1)
	}
}

// BlankLine ends the line and has a blank one follow, unless the text is empty.
func (l *Builder) BlankLine() {
	if l.b.Len() > 0 {
		l.newline = 2
	}
}

// Tab has a tab come before the next word, unless that begins a line.
func (l *Builder) Tab() { l.tabbed = true }

// Words writes s, whose white space separates words.
func (l *Builder) Words(s string) {
	s = Clean(s)
	for s != "" {
		start := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) })
		if start != 0 {
			l.space = true
		}
		if start < 0 {
			return
		}
		s = s[start:]
		end := strings.IndexFunc(s, unicode.IsSpace)
		if end < 0 {
			end = len(s)
		}
		l.separate()
		l.b.WriteString(s[:end])
		s = s[end:]
	}
}

// Raw writes s as it is.
func (l *Builder) Raw(s string) {
	s = Clean(s)
	if s == "" {
		return
	}
	l.separate()
	l.b.WriteString(s)
	l.ended = len(s) - len(strings.TrimRight(s, "\n"))
}

// separate writes what is due before a word.
func (l *Builder) separate() {
	l.breakLine()
	switch {
	case l.b.Len() == 0 || l.ended > 0:
	case l.tabbed:
		l.b.WriteByte('\t')
	case l.space:
		l.b.WriteByte(' ')
	}
	l.space, l.tabbed, l.ended = false, false, 0
}

func (l *Builder) breakLine() {
	for ; l.newline > l.ended; l.ended++ {
		l.b.WriteByte('\n')
	}
	l.newline = 0
}
