package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Place is the position of a value in a message. The zero Place is nowhere.
type Place struct{ at span }

// Found reports whether the place is somewhere.
func (p Place) Found() bool { return p.at.present() }

// Param returns the place of the value found by following names down from the
// params, the zero Place if there is none.
//
// The place is certain unless a member on the way has a duplicate, or a sibling that
// differs only in case: parsers disagree on which of them counts. Of duplicates,
// Param takes the last.
func (m *Message) Param(names ...string) (p Place, certain bool) {
	p, certain = Place{m.params}, true
	for _, name := range names {
		if !p.Found() || m.raw[p.at.from] != '{' {
			return Place{}, certain
		}
		var single bool
		p.at, single = m.findMember(p.at, name)
		certain = certain && single
	}
	return p, certain
}

// findMember finds a member of the object at obj, which is valid: it is part of a
// message. single says that no sibling has its name, ignoring case.
func (m *Message) findMember(obj span, want string) (found span, single bool) {
	single = true
	_, _ = skipObject(m.raw, obj.from, 0, func(name, value span) error {
		key := unquote(m.raw, name)
		switch {
		case string(key) == want:
			single = single && !found.present()
			found = value
		case len(key) >= len(want) && bytes.EqualFold(key, []byte(want)):
			single = false
		}
		return nil
	})
	return found, single
}

// At returns the value at p, nil if p is nowhere.
func (m *Message) At(p Place) json.RawMessage { return m.part(p.at) }

// WithValue returns the message's bytes with value at p, and all else unchanged.
func (m *Message) WithValue(p Place, value json.RawMessage) []byte {
	return splice(m.raw, p.at, string(value))
}

// WithNumber returns the bytes of a request with n in place of its id, and also of
// the value at p, unless p is nowhere.
func (m *Message) WithNumber(n int64, p Place) []byte {
	var digits [20]byte
	return m.spliceTwo(p.at, strconv.AppendInt(digits[:0], n, 10))
}

// ParamsWithNumber returns the params with n in place of the value at p, and the params
// as they came if p is nowhere. p must be in them.
func (m *Message) ParamsWithNumber(n int64, p Place) json.RawMessage {
	if !p.Found() {
		return m.Params()
	}
	from := m.params.from
	return splice(m.Params(), span{p.at.from - from, p.at.to - from}, strconv.FormatInt(n, 10))
}

// WithIDAt is WithID, and also puts the id in place of the value at p, unless p is
// nowhere.
func (m *Message) WithIDAt(id ID, p Place) []byte { return m.spliceTwo(p.at, []byte(id)) }

func (m *Message) spliceTwo(second span, value []byte) []byte {
	first := m.id
	if second.present() && second.from < first.from {
		first, second = second, first
	}
	out := make([]byte, 0, len(m.raw)+2*len(value))
	out = append(out, m.raw[:first.from]...)
	out = append(out, value...)
	if second.present() {
		out = append(out, m.raw[first.to:second.from]...)
		out = append(out, value...)
		first = second
	}
	return append(out, m.raw[first.to:]...)
}
