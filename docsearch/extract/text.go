package extract

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// decode returns data as clean UTF-8. That may be three times as large: it stops at
// maxText.
func decode(data []byte, maxText int) (string, error) {
	if isBinary(data) {
		return "", skip(ReasonBinary, nil)
	}
	var b strings.Builder
	b.Grow(min(len(data), maxText) + 1)
	n, err := io.Copy(&b, io.LimitReader(decoded(data, false), int64(maxText)+1))
	if err != nil {
		return "", skip(ReasonBinary, err)
	}
	if n > int64(maxText) {
		return "", tooMuchText(maxText)
	}
	return plain.Clean(b.String()), nil
}

// decoded returns a reader of data as UTF-8, without a byte order mark. Data without one is
// UTF-8 if it is mostly valid as such, unless it is HTML that declares its encoding, or else
// Windows-1252.
func decoded(data []byte, isHTML bool) io.Reader {
	const declared = 1024 // bytes in which the encoding stands
	head := data[:min(len(data), declared)]
	if !isHTML && !hasUTF16BOM(data) {
		head = nil
	}
	encoding, _, certain := charset.DetermineEncoding(head, "")
	if !certain && (utf8.Valid(data) || mostlyUTF8(data)) {
		return bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	}
	return transform.NewReader(bytes.NewReader(data), unicode.BOMOverride(encoding.NewDecoder()))
}

func hasUTF16BOM(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
}

// isBinary reports whether data has a NUL, or more control characters than text has.
// UTF-16 may have both.
func isBinary(data []byte) bool {
	const sniffed = 64 << 10
	if hasUTF16BOM(data) {
		return false
	}
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
