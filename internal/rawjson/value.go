package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Member returns the value found by following names down from the object obj, as its
// bytes in obj. It reports false if there is none, or if obj is not a valid JSON
// object. Of duplicate members the last counts, as for most parsers.
func Member(obj json.RawMessage, names ...string) (json.RawMessage, bool) {
	at, ok := find(obj, names)
	if !ok {
		return nil, false
	}
	return obj[at.From:at.To:at.To], true
}

// FirstValue returns the JSON value with which data begins, nil if there is none.
func FirstValue(data []byte) json.RawMessage {
	end, err := SkipValue(data, 0, 0)
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
	return Splice(obj, at, string(value))
}

// SetMember returns obj with value as its member of that name: in place of the one
// that Member would find, else added as the last. It returns anything but a valid
// JSON object unchanged.
//
// It is EditMembers of one name, and not written as that: a small object would take twice as long and four times the
// allocations, by BenchmarkSetMember.
func SetMember(obj, value json.RawMessage, name string) json.RawMessage {
	if at, ok := find(obj, []string{name}); ok {
		return Splice(obj, at, string(value))
	}
	comma := ""
	end, ok := eachMember(obj, 0, func(_, _ Span) { comma = "," })
	if !ok {
		return obj
	}
	return Splice(obj, Span{end - 1, end - 1}, comma+string(Quote(name))+":"+string(value))
}

// EditMembers returns obj with the members of these names as edit returns them. It gives edit what the member that
// Member would find has, nil if there is none, and adds a new one as the last. It reads obj once and copies it once,
// and returns anything but a valid JSON object unchanged.
func EditMembers(obj json.RawMessage, names []string,
	edit func(name string, value json.RawMessage) json.RawMessage) json.RawMessage {
	values := make([]Span, len(names))
	comma := ""
	end, ok := eachMember(obj, 0, func(name, value Span) {
		comma = ","
		if i := slices.Index(names, string(Unquote(obj, name))); i >= 0 {
			values[i] = value
		}
	})
	if !ok {
		return obj
	}
	type part struct {
		at   Span
		text []byte
	}
	var parts []part
	var added []byte
	size := len(obj)
	for i, name := range names {
		var value json.RawMessage
		if values[i].Present() {
			value = obj[values[i].From:values[i].To:values[i].To]
			parts = append(parts, part{values[i], edit(name, value)})
		} else {
			added = append(append(append(append(added, comma...), Quote(name)...), ':'), edit(name, nil)...)
			comma = ","
		}
	}
	parts = append(parts, part{Span{end - 1, end - 1}, added})
	slices.SortStableFunc(parts, func(a, b part) int { return a.at.From - b.at.From })
	for _, p := range parts {
		size += len(p.text) - (p.at.To - p.at.From)
	}
	out, from := make([]byte, 0, size), 0
	for _, p := range parts {
		out = append(append(out, obj[from:p.at.From]...), p.text...)
		from = p.at.To
	}
	return append(out, obj[from:]...)
}

// RemoveMember returns obj without its members of that name, and obj itself if there
// are none.
func RemoveMember(obj json.RawMessage, name string) json.RawMessage {
	out := make([]byte, 0, len(obj))
	first, last, removed := 0, 0, false // where the first member begins, and the last one has ended
	_, ok := eachMember(obj, 0, func(n, value Span) {
		if first == 0 {
			first, last, out = n.From, n.From, append(out, obj[:n.From]...)
		}
		separator := obj[last:n.From]
		last = value.To
		if string(Unquote(obj, n)) == name {
			removed = true
			return
		}
		if len(out) > first {
			out = append(out, separator...)
		}
		out = append(out, obj[n.From:value.To]...)
	})
	if !ok || !removed {
		return obj
	}
	return append(out, obj[last:]...)
}

func find(obj []byte, names []string) (Span, bool) {
	at := Span{0, len(obj)}
	for _, want := range names {
		var found Span
		_, ok := eachMember(obj[:at.To], at.From, func(name, value Span) {
			if string(Unquote(obj, name)) == want {
				found = value
			}
		})
		if !ok {
			return Span{}, false
		}
		at = found // if it is none, the next round fails
	}
	return at, at.Present()
}

// eachMember calls visit with each member of the object that data has from i on, and
// nothing else. It returns the index after the object's brace, and reports whether data
// is one.
func eachMember(data []byte, i int, visit func(name, value Span)) (end int, ok bool) {
	i = SkipSpace(data, i)
	if i >= len(data) || data[i] != '{' {
		return i, false
	}
	end, err := SkipObject(data, i, 0, func(name, value Span) error {
		visit(name, value)
		return nil
	})
	return end, err == nil && SkipSpace(data, end) == len(data)
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
	if end, err := SkipString(raw, 0); err != nil || end != len(raw) {
		return "", false
	}
	return string(Unquote(raw, Span{0, len(raw)})), true
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
	i := SkipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return false
	}
	// Each may nest as a message may.
	_, err := SkipArray(array, i, -1, func(at Span) { visit(array[at.From:at.To:at.To]) })
	return err == nil
}

// Quote returns the JSON form of a string.
func Quote(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always has a JSON form
	return b
}

// Splice returns data with value in the place of a part of it.
func Splice(data []byte, at Span, value string) []byte {
	out := make([]byte, 0, len(data)-(at.To-at.From)+len(value))
	out = append(out, data[:at.From]...)
	out = append(out, value...)
	return append(out, data[at.To:]...)
}
