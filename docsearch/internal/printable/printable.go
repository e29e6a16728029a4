// Package printable makes text of others, such as the name of a file or what a server
// says, harmless to the terminal that shows it.
package printable

import (
	"strings"
	"unicode"
)

// Text returns text without control characters, line ends, and invisible characters,
// some of which change the direction of text.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) {
			return -1
		}
		return r
	}, text)
}

// Lines is Text for several lines: it keeps \n.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) && r != '\n' {
			return -1
		}
		return r
	}, text)
}

// Line is Text with the words on one line, one blank apart.
func Line(text string) string { return Text(strings.Join(strings.Fields(text), " ")) }

// acts reports whether a terminal may act on r. It shows the invisible characters that
// join letters, or stand before a number in Arabic.
func acts(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) &&
		!unicode.In(r, unicode.Join_Control, unicode.Prepended_Concatenation_Mark)
}
