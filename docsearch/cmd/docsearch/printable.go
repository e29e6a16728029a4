package main

import (
	"strings"
	"unicode"
)

// printable removes control characters, and those that change the direction of text:
// the name of a file, or what a document says, must not control the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, text)
}

// printableLines is printable for text of several lines.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for n := range lines {
		lines[n] = printable(lines[n])
	}
	return strings.Join(lines, "\n")
}
