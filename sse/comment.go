package sse

import "cmp"

// comment returns the text of a comment line. It is not empty: at an event with
// nothing in it the library stops without a word, and locks up.
func comment(text string) []byte { return []byte(cmp.Or(text, heartbeatComment)) }
