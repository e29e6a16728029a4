// Package rawjson finds and changes values in JSON without decoding it, so that all other bytes stay as they came: a
// gateway must not change what it carries. Functions that are not said to check their argument take valid JSON, as the
// parts of a jsonrpc.Message are.
package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
)

// MaxDepth is how deeply arrays and objects may nest in a message. Peers parse
// recursively and some die of depth; no MCP message comes near it.
const MaxDepth = 512

// Span is a half-open range of bytes, From up to and without To. The zero Span is absent.
type Span struct{ From, To int }

// Present reports whether the range has bytes.
func (s Span) Present() bool { return s.To > s.From }

// A SyntaxError says where and why bytes are no JSON value (RFC 8259).
type SyntaxError struct {
	At     int
	Reason string
}

// Error says why, and at which byte.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.At) }

// SkipSpace returns the index of the first byte from i on that is no white space of JSON.
func SkipSpace(data []byte, i int) int {
	for i < len(data) {
		switch data[i] {
		case ' ', '\t', '\r', '\n':
			i++
		default:
			return i
		}
	}
	return i
}

// SkipValue returns the index after the JSON value that starts at data[i]. depth is how many arrays and objects are
// around it. The error is a *SyntaxError.
func SkipValue(data []byte, i, depth int) (int, error) {
	if i >= len(data) {
		return i, &SyntaxError{i, "unexpected end"}
	}
	switch c := data[i]; {
	case c == '"':
		return SkipString(data, i)
	case c == '{':
		return SkipObject(data, i, depth, nil)
	case c == '[':
		return SkipArray(data, i, depth, nil)
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(data, i)
	case c == 't':
		return skipWord(data, i, "true")
	case c == 'f':
		return skipWord(data, i, "false")
	case c == 'n':
		return skipWord(data, i, "null")
	}
	return i, &SyntaxError{i, fmt.Sprintf("unexpected character %q", data[i])}
}

func skipWord(data []byte, i int, word string) (int, error) {
	if len(data)-i < len(word) {
		return i, &SyntaxError{len(data), "unexpected end"}
	}
	if string(data[i:i+len(word)]) != word {
		return i, &SyntaxError{i, "unknown word"}
	}
	return i + len(word), nil
}

// SkipString is SkipValue for a string.
func SkipString(data []byte, i int) (int, error) {
	for i = skipPlain(data, i+1); i < len(data); i = skipPlain(data, i) {
		switch c := data[i]; c {
		case '"':
			return i + 1, nil
		case '\\':
			n, err := skipEscape(data, i)
			if err != nil {
				return i, err
			}
			i = n + 1
		default:
			return i, &SyntaxError{i, fmt.Sprintf("control character 0x%02x in a string", c)}
		}
	}
	return i, &SyntaxError{i, "unexpected end in a string"}
}

// ones has every byte of a word set to 1, highs the highest bit of each byte.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// skipPlain returns the index of the first byte from i on that is special in a
// string: a quote, a backslash or a control character. It reads eight bytes at a
// time, because most messages are mostly text.
func skipPlain(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, slash := w^ones*'"', w^ones*'\\'
		// A byte b < n sets the highest bit of b-n, which b itself does not have. A
		// borrow can only spoil bytes above the first hit.
		hit := ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for i < len(data) && data[i] >= 0x20 && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

// skipEscape returns the index of the last byte of the escape at data[i].
func skipEscape(data []byte, i int) (int, error) {
	if i+1 >= len(data) {
		return i, &SyntaxError{i, "unexpected end in a string"}
	}
	switch data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k >= len(data) || strings.IndexByte("0123456789abcdefABCDEF", data[k]) < 0 {
				return i, &SyntaxError{i, "invalid \\u escape"}
			}
		}
		return i + 5, nil
	}
	return i, &SyntaxError{i, "invalid escape"}
}

func skipDigits(data []byte, i int) (int, error) {
	from := i
	for i < len(data) && data[i] >= '0' && data[i] <= '9' {
		i++
	}
	if i == from {
		return i, &SyntaxError{i, "digit expected"}
	}
	return i, nil
}

func skipNumber(data []byte, i int) (int, error) {
	if data[i] == '-' {
		i++
	}
	var err error
	if i < len(data) && data[i] == '0' {
		i++
	} else if i, err = skipDigits(data, i); err != nil {
		return i, err
	}
	if i < len(data) && data[i] == '.' {
		i, err = skipDigits(data, i+1)
		if err != nil {
			return i, err
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		return skipDigits(data, i)
	}
	return i, nil
}

// SkipArray is SkipValue for an array. It calls visit, if not nil, with each element.
func SkipArray(data []byte, i, depth int, visit func(element Span)) (int, error) {
	return skipItems(data, i, depth, ']', "array", func(i int) (int, error) {
		end, err := SkipValue(data, i, depth+1)
		if err == nil && visit != nil {
			visit(Span{i, end})
		}
		return end, err
	})
}

// SkipObject is SkipValue for an object. It calls visit, if not nil, with each
// member; an error of visit ends the walk.
func SkipObject(data []byte, i, depth int, visit func(name, value Span) error) (int, error) {
	return skipItems(data, i, depth, '}', "object", func(i int) (int, error) {
		name, value, err := skipMember(data, i, depth)
		if err == nil && visit != nil {
			err = visit(name, value)
		}
		return value.To, err
	})
}

// skipItems skips an array or an object, whose items skip skips.
func skipItems(data []byte, i, depth int, shut byte, what string, skip func(i int) (int, error)) (end int, err error) {
	if depth >= MaxDepth {
		return i, &SyntaxError{i, fmt.Sprintf("nested over %d levels", MaxDepth)}
	}
	i = SkipSpace(data, i+1)
	if i < len(data) && data[i] == shut {
		return i + 1, nil
	}
	for {
		i, err = skip(i)
		if err != nil {
			return i, err
		}
		i = SkipSpace(data, i)
		switch {
		case i >= len(data):
			return i, &SyntaxError{i, "unexpected end in an " + what}
		case data[i] == shut:
			return i + 1, nil
		case data[i] != ',':
			return i, &SyntaxError{i, fmt.Sprintf("',' or '%c' expected", shut)}
		}
		i = SkipSpace(data, i+1)
	}
}

func skipMember(data []byte, i, depth int) (name, value Span, err error) {
	if i >= len(data) || data[i] != '"' {
		return name, value, &SyntaxError{i, "member name expected"}
	}
	name.From = i
	name.To, err = SkipString(data, i)
	if err != nil {
		return name, value, err
	}
	i = SkipSpace(data, name.To)
	if i >= len(data) || data[i] != ':' {
		return name, value, &SyntaxError{i, "':' expected"}
	}
	value.From = SkipSpace(data, i+1)
	value.To, err = SkipValue(data, value.From, depth+1)
	return name, value, err
}

// Unquote returns the string whose JSON form is data[s.From:s.To]. The result is
// part of data if the string has no escapes.
func Unquote(data []byte, s Span) []byte {
	raw := data[s.From+1 : s.To-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var v string
	_ = json.Unmarshal(data[s.From:s.To], &v) // valid by the scan
	return []byte(v)
}
