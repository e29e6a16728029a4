package extract

import (
	"strings"
	"unicode"
)

// lineBuilder builds text from words and breaks. It collapses white space, drops that at
// the ends of lines, and leaves at most one blank line. All of its text is clean.
type lineBuilder struct {
	b       strings.Builder
	space   bool // a space is due before the next word
	tabbed  bool // a tab is due before the next word
	newline int  // line ends that are due before the next word
	ended   int  // line ends that the text ends with
}

// Len returns the offset at which the next word begins. It writes the breaks that are
// due.
func (l *lineBuilder) Len() int {
	l.breakLine()
	return l.b.Len()
}

// From returns the text from offset.
func (l *lineBuilder) From(offset int) string { return l.b.String()[min(offset, l.b.Len()):] }

// String returns the text.
func (l *lineBuilder) String() string {
	if s := l.b.String(); s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return l.b.String() + "\n"
}

func (l *lineBuilder) newLine() {
	if l.b.Len() > 0 {
		l.newline = max(l.newline, 1)
	}
}

func (l *lineBuilder) blankLine() {
	if l.b.Len() > 0 {
		l.newline = 2
	}
}

func (l *lineBuilder) tab() { l.tabbed = true }

// words writes s, whose white space separates words.
func (l *lineBuilder) words(s string) {
	s = clean(s)
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

// raw writes s as it is.
func (l *lineBuilder) raw(s string) {
	if s = clean(s); s == "" {
		return
	}
	l.separate()
	l.b.WriteString(s)
	l.ended = len(s) - len(strings.TrimRight(s, "\n"))
}

// separate writes what is due before a word.
func (l *lineBuilder) separate() {
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

func (l *lineBuilder) breakLine() {
	for ; l.newline > l.ended; l.ended++ {
		l.b.WriteByte('\n')
	}
	l.newline = 0
}
