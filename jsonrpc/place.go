package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Place is where a value stands in a message. The zero Place is nowhere.
type Place struct{ at span }

// Found reports whether the place is one.
func (p Place) Found() bool { return p.at.present() }

// Param returns the place of the value found by following the names from the
// params downwards, nowhere when there is none.
//
// It is certain unless a member on the way stands twice, or one beside it
// differs in case alone: parsers do not agree which of them counts. Of members
// that stand twice, the place is that of the last.
func (m *Message) Param(names ...string) (p Place, certain bool) {
	p, certain = Place{m.params}, true
	for _, name := range names {
		if !p.Found() || m.raw[p.at.from] != '{' {
			return Place{}, certain
		}
		var single bool
		p.at, single = m.member(p.at, name)
		certain = certain && single
	}
	return p, certain
}

// member finds a member of the object that stands at obj, which is valid: it is
// part of a message.
func (m *Message) member(obj span, want string) (found span, single bool) {
	single = true
	_, _ = skipObject(m.raw, obj.from, 0, func(name, value span) error {
		key := unquoted(m.raw, name)
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

// At returns the value at a place of the message, nil when that is nowhere.
func (m *Message) At(p Place) json.RawMessage { return m.part(p.at) }

// WithValue returns the message's bytes with value at a place of it, and all
// else unchanged.
func (m *Message) WithValue(p Place, value json.RawMessage) []byte {
	return splice(m.raw, p.at, string(value))
}

// WithNumber returns the bytes of a request with n in place of its id, and of
// the value at p, unless that is nowhere.
func (m *Message) WithNumber(n int64, p Place) []byte {
	var digits [20]byte
	return m.withTwo(p.at, strconv.AppendInt(digits[:0], n, 10))
}

// WithIDAt is WithID, and puts the id in place of the value at p too, unless that
// is nowhere.
func (m *Message) WithIDAt(id ID, p Place) []byte { return m.withTwo(p.at, []byte(id)) }

func (m *Message) withTwo(second span, value []byte) []byte {
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
