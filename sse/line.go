package sse

import (
	"bytes"
	"cmp"
)

// line returns data as the library may write it. It writes a line break as it
// is, and what begins with a colon as a comment: data could then write fields,
// events even, of its own. In JSON line breaks only stand between tokens, so a
// space is as good.
func line(data []byte) []byte {
	if data[0] != ':' && bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	out := make([]byte, 0, len(data)+1)
	if data[0] == ':' {
		out = append(out, ' ')
	}
	for _, c := range data {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		out = append(out, c)
	}
	return out
}

// comment returns the text of a comment line. It is not empty: at an event with
// nothing in it the library stops without a word, and locks up.
func comment(text string) []byte { return []byte(cmp.Or(text, heartbeatComment)) }
