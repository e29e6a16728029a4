// Package plaintext makes texts for people: of errors, of what servers say, and of numbers of things.
package plaintext

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Words returns the text of an error in plain words: it says "time is up" where Go speaks of a context.
func Words(text string) string {
	return strings.ReplaceAll(text, context.DeadlineExceeded.Error(), "time is up")
}

// Visible returns a text of a server as it can be shown on a terminal, on one line: a character that would
// steer that is written as in Go.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		quoted := strconv.QuoteRune(r)
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Count returns a number of things, as in "2 tools". The plural may be given, unless that just has an s.
func Count(n int, thing string, plural ...string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %s", n, append(plural, thing+"s")[0])
}
