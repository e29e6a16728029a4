// Package shellword writes words for a shell of Unix, such as those of a command that people paste.
package shellword

import (
	"regexp"
	"strings"
)

var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quote returns a word as a shell of Unix takes it: itself, or in single quotes.
func Quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
