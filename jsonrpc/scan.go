package jsonrpc

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

// span is a half-open range of bytes in a message; the zero span is "absent".
type span struct{ from, to int }

func (s span) present() bool { return s.to > s.from }

// syntaxError says where and why bytes are no JSON value (RFC 8259).
type syntaxError struct {
	at     int
	reason string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.reason, e.at) }

func skipSpace(data []byte, i int) int {
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

// skipValue returns the index after the JSON value that starts at data[i].
func skipValue(data []byte, i, depth int) (int, error) {
	if i >= len(data) {
		return i, &syntaxError{i, "unexpected end"}
	}
	switch c := data[i]; {
	case c == '"':
		return skipString(data, i)
	case c == '{':
		return skipObject(data, i, depth, nil)
	case c == '[':
		return skipArray(data, i, depth, nil)
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(data, i)
	case c == 't':
		return skipWord(data, i, "true")
	case c == 'f':
		return skipWord(data, i, "false")
	case c == 'n':
		return skipWord(data, i, "null")
	}
	return i, &syntaxError{i, fmt.Sprintf("unexpected character %q", data[i])}
}

func skipWord(data []byte, i int, word string) (int, error) {
	if len(data)-i < len(word) {
		return i, &syntaxError{len(data), "unexpected end"}
	}
	if string(data[i:i+len(word)]) != word {
		return i, &syntaxError{i, "unknown word"}
	}
	return i + len(word), nil
}

func skipString(data []byte, i int) (int, error) {
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
			return i, &syntaxError{i, fmt.Sprintf("control character 0x%02x in a string", c)}
		}
	}
	return i, &syntaxError{i, "unexpected end in a string"}
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
		return i, &syntaxError{i, "unexpected end in a string"}
	}
	switch data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k >= len(data) || strings.IndexByte("0123456789abcdefABCDEF", data[k]) < 0 {
				return i, &syntaxError{i, "invalid \\u escape"}
			}
		}
		return i + 5, nil
	}
	return i, &syntaxError{i, "invalid escape"}
}

func skipDigits(data []byte, i int) (int, error) {
	from := i
	for i < len(data) && data[i] >= '0' && data[i] <= '9' {
		i++
	}
	if i == from {
		return i, &syntaxError{i, "digit expected"}
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

// skipArray is skipValue for an array. It calls visit, if not nil, with each element.
func skipArray(data []byte, i, depth int, visit func(element span)) (int, error) {
	return skipItems(data, i, depth, ']', "array", func(i int) (int, error) {
		end, err := skipValue(data, i, depth+1)
		if err == nil && visit != nil {
			visit(span{i, end})
		}
		return end, err
	})
}

// skipObject is skipValue for an object. It calls visit, if not nil, with each
// member; an error of visit ends the walk.
func skipObject(data []byte, i, depth int, visit func(name, value span) error) (int, error) {
	return skipItems(data, i, depth, '}', "object", func(i int) (int, error) {
		name, value, err := skipMember(data, i, depth)
		if err == nil && visit != nil {
			err = visit(name, value)
		}
		return value.to, err
	})
}

// skipItems skips an array or an object, whose items skip skips.
func skipItems(data []byte, i, depth int, shut byte, what string, skip func(i int) (int, error)) (end int, err error) {
	if depth >= MaxDepth {
		return i, &syntaxError{i, fmt.Sprintf("nested over %d levels", MaxDepth)}
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == shut {
		return i + 1, nil
	}
	for {
		i, err = skip(i)
		if err != nil {
			return i, err
		}
		i = skipSpace(data, i)
		switch {
		case i >= len(data):
			return i, &syntaxError{i, "unexpected end in an " + what}
		case data[i] == shut:
			return i + 1, nil
		case data[i] != ',':
			return i, &syntaxError{i, fmt.Sprintf("',' or '%c' expected", shut)}
		}
		i = skipSpace(data, i+1)
	}
}

func skipMember(data []byte, i, depth int) (name, value span, err error) {
	if i >= len(data) || data[i] != '"' {
		return name, value, &syntaxError{i, "member name expected"}
	}
	name.from = i
	name.to, err = skipString(data, i)
	if err != nil {
		return name, value, err
	}
	i = skipSpace(data, name.to)
	if i >= len(data) || data[i] != ':' {
		return name, value, &syntaxError{i, "':' expected"}
	}
	value.from = skipSpace(data, i+1)
	value.to, err = skipValue(data, value.from, depth+1)
	return name, value, err
}

// unquote returns the string whose JSON form is data[s.from:s.to]. The result is
// part of data if the string has no escapes.
func unquote(data []byte, s span) []byte {
	raw := data[s.from+1 : s.to-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var v string
	_ = json.Unmarshal(data[s.from:s.to], &v) // valid by the scan
	return []byte(v)
}
