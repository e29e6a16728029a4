package extract

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// decode returns data as clean UTF-8. Data that is neither UTF-8 nor UTF-16 with a byte
// order mark is taken as Windows-1252, or is binary.
func decode(data []byte, maxText int) (string, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return decodeFrom(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), data, maxText)
	case isBinary(data):
		return "", skip(ReasonBinary, nil)
	case utf8.Valid(data):
		return clean(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))), nil
	case mostlyUTF8(data):
		return clean(string(data)), nil
	}
	return decodeFrom(charmap.Windows1252, data, maxText)
}

// decodeFrom returns data, which has this encoding, as clean UTF-8. That may be three
// times as large: it stops at maxText.
func decodeFrom(e encoding.Encoding, data []byte, maxText int) (string, error) {
	var b strings.Builder
	b.Grow(min(len(data), maxText) + 1)
	n, err := io.Copy(&b, io.LimitReader(e.NewDecoder().Reader(bytes.NewReader(data)), int64(maxText)+1))
	if err != nil {
		return "", skip(ReasonBinary, err)
	}
	if n > int64(maxText) {
		return "", tooMuchText(maxText)
	}
	return clean(b.String()), nil
}

// isBinary reports whether data has a NUL, or more control characters than text has.
func isBinary(data []byte) bool {
	const sniffed = 64 << 10
	if bytes.IndexByte(data, 0) >= 0 {
		return true
	}
	control := 0
	data = data[:min(len(data), sniffed)]
	for _, b := range data {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != '\b' && b != 0x1b {
			control++
		}
	}
	return control > len(data)/50
}

// mostlyUTF8 reports whether data is UTF-8 with some broken characters, not text in an
// encoding of one byte per character.
func mostlyUTF8(data []byte) bool {
	good, bad := 0, 0
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		data = data[n:]
	}
	return good > 4*bad
}

// clean makes s what Document.Text promises.
func clean(s string) string {
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

// oneLine returns s with its white space collapsed, cut to what a title or a heading
// may have.
func oneLine(s string) string {
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
