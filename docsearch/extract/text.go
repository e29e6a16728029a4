package extract

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
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
		return plain.Clean(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))), nil
	case mostlyUTF8(data):
		return plain.Clean(string(data)), nil
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
	return plain.Clean(b.String()), nil
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
