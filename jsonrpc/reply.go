package jsonrpc

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Reply is a response whose id is a positive integer. It holds what Parse would
// return, without its allocations.
type Reply struct {
	Message // its ID is empty: Number is the id
	Number  int64
}

// NewResponse returns a response whose result, or else fault, the error object, is valid
// JSON on one line. It does not check that.
func NewResponse(id ID, result, fault json.RawMessage) *Message {
	member, value := "result", result
	if fault != nil {
		member, value = "error", fault
	}
	m := &Message{Kind: Response, ID: id, raw: newResponse(id, member, value)}
	m.id.from = len(responseHead)
	m.id.to = m.id.from + len(id)
	at := span{len(m.raw) - 1 - len(value), len(m.raw) - 1}
	if fault != nil {
		m.fault = at
	} else {
		m.result = at
	}
	return m
}

// ParseReply reads a response to a request whose id was a positive integer. It
// reports false for anything else, valid or not: Parse says what that is. It keeps
// data as Parse does.
func ParseReply(data []byte) (r Reply, ok bool) {
	data = trimSpace(data)
	if len(data) == 0 || data[0] != '{' || !utf8.Valid(data) ||
		bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 {
		return r, false
	}
	r.raw = data
	version, ok := r.scanMembers()
	if !ok || string(r.part(version)) != `"2.0"` || r.result.present() == r.fault.present() || !r.id.present() {
		return Reply{}, false
	}
	r.Kind = Response
	r.Number, ok = Integer(r.part(r.id))
	return r, ok
}

// scanMembers notes the members at the top level. It reports false for anything that
// may not be a response.
func (r *Reply) scanMembers() (version span, ok bool) {
	for i := skipSpace(r.raw, 1); ; {
		name, value, err := skipMember(r.raw, i, 0)
		if err != nil {
			return version, false
		}
		at := &span{}
		switch string(unquote(r.raw, name)) {
		case "jsonrpc":
			at = &version
		case "id":
			at = &r.id
		case "result":
			at = &r.result
		case "error":
			at = &r.fault
		case "method", "params":
			return version, false
		}
		if at.present() {
			return version, false
		}
		*at = value
		i = skipSpace(r.raw, value.to)
		switch {
		case i < len(r.raw) && r.raw[i] == ',':
			i = skipSpace(r.raw, i+1)
		default:
			return version, i == len(r.raw)-1 && r.raw[i] == '}'
		}
	}
}

// Integer returns the positive integer whose JSON form is raw. It reports false if
// raw is none, or has more than 15 digits: not every peer keeps those.
func Integer(raw json.RawMessage) (n int64, ok bool) {
	if len(raw) == 0 || len(raw) > 15 || raw[0] == '0' {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
