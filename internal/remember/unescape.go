package remember

import (
	"encoding/hex"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxEscapes bounds how often a text has been escaped: JSON in a URL in HTML is 3 times.
const maxEscapes = 4

// inURL matches what stands for bytes in a URL, such as %D0%BE, and inText what stands for characters in a text of JSON or of
// a programming language: \u043e, \u{43e}, \U0000043e, \xd0\xbe, \320\276, \n.
var (
	inURL  = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})+`)
	inText = regexp.MustCompile(`(?:\\u[0-9A-Fa-f]{4})+|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|(?:\\x[0-9A-Fa-f]{2})+|(?:\\[0-3][0-7]{2})+|(?s:\\.)`)
)

// unescaped returns a text as it was before somebody escaped it for JSON, a programming language, a URL or HTML, or for one
// in another. whole is false if it may have been escaped more than maxEscapes times: then plain is still escaped.
func unescaped(text string) (plain string, whole bool) {
	isPlain := func() bool { return !strings.ContainsAny(text, `&%\`) }
	for range maxEscapes {
		if isPlain() {
			break
		}
		once := inURL.ReplaceAllStringFunc(html.UnescapeString(text), func(escaped string) string {
			return ofHex(strings.ReplaceAll(escaped, "%", ""))
		})
		once = inText.ReplaceAllStringFunc(once, unescapedText)
		if once == text {
			return text, true
		}
		text = once
	}
	return text, isPlain()
}

// ofHex returns the text of bytes in hexadecimal.
func ofHex(digits string) string {
	bytes, _ := hex.DecodeString(digits) // the patterns say that it is hexadecimal
	return ofBytes(bytes)
}

// ofBytes returns the text of bytes in UTF-8, or else in Latin-1, in which Python and JavaScript write \xe9.
func ofBytes(bytes []byte) string {
	if utf8.Valid(bytes) {
		return string(bytes)
	}
	runes := make([]rune, len(bytes))
	for i, b := range bytes {
		runes[i] = rune(b)
	}
	return string(runes)
}

// unescapedText returns what a match of inText stands for.
func unescapedText(escaped string) string {
	number := func(digits string, base int) uint64 {
		n, _ := strconv.ParseUint(digits, base, 32) // the pattern says that it is one
		return n
	}
	switch kind, rest := escaped[1], escaped[2:]; {
	case strings.HasPrefix(rest, "{"):
		return string(rune(number(strings.Trim(rest, "{}"), 16)))
	case kind == 'u' && rest != "":
		var units []uint16
		for _, digits := range strings.Split(escaped[2:], `\u`) {
			units = append(units, uint16(number(digits, 16)))
		}
		return string(utf16.Decode(units))
	case kind == 'U' && rest != "":
		return string(rune(number(rest, 16)))
	case kind == 'x' && rest != "":
		return ofHex(strings.ReplaceAll(escaped, `\x`, ""))
	case len(escaped) >= 4:
		var bytes []byte
		for _, digits := range strings.Split(escaped[1:], `\`) {
			bytes = append(bytes, byte(number(digits, 8)))
		}
		return ofBytes(bytes)
	case strings.ContainsRune("abefnrtv0", rune(kind)):
		return " "
	default:
		return escaped[1:]
	}
}
