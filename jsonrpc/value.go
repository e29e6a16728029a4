package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Member returns the value found by following names down from the object obj, as its
// bytes in obj. It reports false if there is none, or if obj is not a valid JSON
// object. Of duplicate members the last counts, as for most parsers.
func Member(obj json.RawMessage, names ...string) (json.RawMessage, bool) {
	at, ok := find(obj, names)
	if !ok {
		return nil, false
	}
	return obj[at.from:at.to:at.to], true
}

// FirstValue returns the JSON value with which data begins, nil if there is none.
func FirstValue(data []byte) json.RawMessage {
	end, err := skipValue(data, 0, 0)
	if err != nil {
		return nil
	}
	return data[:end:end]
}

// ReplaceMember returns obj with value in place of the member that Member would
// find, and obj itself if there is none.
func ReplaceMember(obj, value json.RawMessage, names ...string) json.RawMessage {
	at, ok := find(obj, names)
	if !ok {
		return obj
	}
	return splice(obj, at, string(value))
}

// SetMember returns obj with value as its member of that name: in place of the one
// that Member would find, else added as the last. It returns anything but a valid
// JSON object unchanged.
func SetMember(obj, value json.RawMessage, name string) json.RawMessage {
	if at, ok := find(obj, []string{name}); ok {
		return splice(obj, at, string(value))
	}
	comma := ""
	end, ok := eachMember(obj, 0, func(_, _ span) { comma = "," })
	if !ok {
		return obj
	}
	return splice(obj, span{end - 1, end - 1}, comma+string(Quote(name))+":"+string(value))
}

// RemoveMember returns obj without its members of that name, and obj itself if there
// are none.
func RemoveMember(obj json.RawMessage, name string) json.RawMessage {
	out := make([]byte, 0, len(obj))
	first, last, removed := 0, 0, false // where the first member begins, and the last one has ended
	_, ok := eachMember(obj, 0, func(n, value span) {
		if first == 0 {
			first, last, out = n.from, n.from, append(out, obj[:n.from]...)
		}
		separator := obj[last:n.from]
		last = value.to
		if string(unquote(obj, n)) == name {
			removed = true
			return
		}
		if len(out) > first {
			out = append(out, separator...)
		}
		out = append(out, obj[n.from:value.to]...)
	})
	if !ok || !removed {
		return obj
	}
	return append(out, obj[last:]...)
}

func find(obj []byte, names []string) (span, bool) {
	at := span{0, len(obj)}
	for _, want := range names {
		var found span
		_, ok := eachMember(obj[:at.to], at.from, func(name, value span) {
			if string(unquote(obj, name)) == want {
				found = value
			}
		})
		if !ok {
			return span{}, false
		}
		at = found // if it is none, the next round fails
	}
	return at, at.present()
}

// eachMember calls visit with each member of the object that data has from i on, and
// nothing else. It returns the index after the object's brace, and reports whether data
// is one.
func eachMember(data []byte, i int, visit func(name, value span)) (end int, ok bool) {
	i = skipSpace(data, i)
	if i >= len(data) || data[i] != '{' {
		return i, false
	}
	end, err := skipObject(data, i, 0, func(name, value span) error {
		visit(name, value)
		return nil
	})
	return end, err == nil && skipSpace(data, end) == len(data)
}

// MemberText returns the text of a member: see [Member] and [Text].
func MemberText(obj json.RawMessage, names ...string) (string, bool) {
	raw, _ := Member(obj, names...)
	return Text(raw)
}

// Text returns the string whose JSON form is raw. It reports false if raw is not a
// JSON string.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if end, err := skipString(raw, 0); err != nil || end != len(raw) {
		return "", false
	}
	return string(unquote(raw, span{0, len(raw)})), true
}

// Integer returns the positive integer whose JSON form is raw. It reports false if
// raw is none, or has more than 15 digits: not every peer keeps those.
func Integer(raw json.RawMessage) (n int64, ok bool) {
	if len(raw) == 0 || len(raw) > 15 || raw[0] == '0' {
		return 0, false
	}
	u, err := strconv.ParseUint(string(raw), 10, 63)
	return int64(u), err == nil
}

// Alike reports whether two ids can only mean the same request: an integer, the same with a
// fraction of zeros, and its decimal in a string are alike. Some programs change one into
// the other.
func Alike(a, b ID) bool { return a == b || plainID(a) == plainID(b) }

// plainID returns an id in the form that those alike share.
func plainID(id ID) string {
	text, isText := Text([]byte(id))
	if !isText {
		text = string(id)
	}
	if whole, fraction, ok := strings.Cut(text, "."); ok && !isText && strings.Trim(fraction, "0") == "" {
		text = whole
	}
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > 1 && digits[0] == '0' {
		return string(id)
	}
	return text
}

// Compact returns JSON without the white space between its tokens, and so without
// line breaks. It returns anything but JSON unchanged.
func Compact(data []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return data
	}
	return b.Bytes()
}

// Filter returns the array with only the elements that keep accepts, their bytes
// unchanged. It returns anything but an array unchanged.
func Filter(array json.RawMessage, keep func(element json.RawMessage) bool) json.RawMessage {
	out := json.RawMessage("[")
	end := Each(array, func(element json.RawMessage) {
		if !keep(element) {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, element...)
	})
	if !end {
		return array
	}
	return append(out, ']')
}

// Each calls visit with each element of an array, and reports whether array is one.
// array must be valid JSON, as parts of a message are.
func Each(array json.RawMessage, visit func(element json.RawMessage)) bool {
	i := skipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return false
	}
	// Each may nest as a message may.
	_, err := skipArray(array, i, -1, func(at span) { visit(array[at.from:at.to:at.to]) })
	return err == nil
}

// Split returns the elements, 1 to limit, of an array from outside. It fails with an *Error.
func Split(data []byte, limit int) (elements []json.RawMessage, err *Error) {
	if !json.Valid(data) {
		return nil, Errorf(CodeParseError, "the body is not JSON")
	}
	n := 0
	collect := func(element json.RawMessage) {
		n++
		if n <= limit { // millions of empty elements would take ten times their size
			elements = append(elements, element)
		}
	}
	if !Each(data, collect) {
		return nil, Errorf(CodeInvalidRequest, "the batch is not an array, or nested too deeply")
	}
	if n == 0 || n > limit {
		return nil, Errorf(CodeInvalidRequest, "the batch has %d messages: it must have 1 to %d", n, limit)
	}
	return elements, nil
}
