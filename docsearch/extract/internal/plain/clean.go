package plain

import (
	"strings"
	"unicode/utf8"
)

// Clean makes s valid UTF-8 without NUL, U+E000 and U+E001, whose lines end with \n.
func Clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexByte(s, '\r') >= 0 {
		s = strings.ReplaceAll(s, "\r\n", "\n")
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return withoutReserved(s)
}

// withoutReserved removes the characters that the index reserves for itself, and NUL.
func withoutReserved(s string) string {
	const lead = "\xee\x80" // the first bytes of U+E000 and U+E001
	if strings.IndexByte(s, 0) < 0 && !strings.Contains(s, lead) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == 0 || r == '\ue000' || r == '\ue001' {
			return -1
		}
		return r
	}, s)
}

// OneLine returns s with its white space collapsed, cut to what a title or a heading
// may have.
func OneLine(s string) string {
	const longest = 300
	if len(s) > 8*longest {
		s = s[:8*longest]
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
