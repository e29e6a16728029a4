package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxIDBytes is the longest id, in bytes of its JSON form, that Parse accepts.
const MaxIDBytes = 1024

// MaxMethodBytes is the longest method name, in bytes of its JSON form, that Parse
// accepts. The gateway remembers the name while the request is unanswered.
const MaxMethodBytes = 1024

// ID is a request id in the JSON form in which it came: `1`, `1.5`, `"a"`. Two ids
// are the same if their bytes are. Empty means that there is none.
type ID string

// Null is the id of an error response to a message whose id could not be read.
const Null ID = "null"

// Kind says what a message is.
type Kind uint8

// The kinds of message. Invalid appears only with an error of Parse.
const (
	Invalid Kind = iota
	Request
	Notification
	Response
)

var kindNames = [...]string{"invalid", "request", "notification", "response"}

// String returns the kind in lower case.
func (k Kind) String() string { return kindNames[k] }

// Message is one JSON-RPC message. It is safe for concurrent use once its Context is set.
type Message struct {
	// Kind is what the message is.
	Kind Kind
	// ID holds the bytes of the id; empty for a notification, Null for a response that
	// names no request.
	ID ID
	// Method is empty for a response.
	Method string
	// Context has the values of the HTTP request that brought the message, for servers
	// in this process that ask for them; nil for most. It has no end.
	Context context.Context

	raw                       []byte
	id, params, result, fault span
	ambiguous                 bool
}

// Certain reports whether all parsers read the message alike. Some ignore case in
// the names of members, and would take "ID" for the id.
func (m *Message) Certain() bool { return !m.ambiguous }

// Raw returns the whole message on one line. The caller must not change it.
func (m *Message) Raw() []byte { return m.raw }

// Params returns the params as they came; nil if there are none.
func (m *Message) Params() json.RawMessage { return m.part(m.params) }

// Result returns the result of a response as it came; nil for an error.
func (m *Message) Result() json.RawMessage { return m.part(m.result) }

// Error returns the error object of a response as it came; nil for a result.
func (m *Message) Error() json.RawMessage { return m.part(m.fault) }

func (m *Message) part(s span) json.RawMessage {
	if !s.present() {
		return nil
	}
	return json.RawMessage(m.raw[s.from:s.to:s.to])
}

// WithID returns the message's bytes with id in place of its own and all else
// unchanged. The caller must not change them. A message without that member, such as a response that names no
// request, gets it as its first.
func (m *Message) WithID(id ID) []byte {
	switch {
	case !m.id.present():
		return splice(m.raw, span{1, 1}, `"id":`+string(id)+`,`)
	case string(m.raw[m.id.from:m.id.to]) == string(id):
		return m.raw
	}
	return splice(m.raw, m.id, string(id))
}

func splice(data []byte, at span, value string) []byte {
	out := make([]byte, 0, len(data)-(at.to-at.from)+len(value))
	out = append(out, data[:at.from]...)
	out = append(out, value...)
	return append(out, data[at.to:]...)
}

// Parse reads one JSON-RPC 2.0 message. The message keeps data, which must not
// change afterwards; if data holds line breaks, it keeps a compacted copy.
//
// The error is always an *[Error] that may be sent to the peer: CodeParseError for
// data that is not JSON, which includes invalid UTF-8 and nesting over MaxDepth;
// CodeInvalidRequest for JSON that is not a single JSON-RPC message, such as a
// batch, duplicate members, or an id that is neither a string nor a number. If the
// id of an invalid message is certain, Parse also returns a message with that id,
// else nil.
func Parse(data []byte) (*Message, error) {
	if err := checkText(data); err != nil {
		return nil, Errorf(CodeParseError, "invalid JSON: %v", err)
	}
	data = trimSpace(data)
	if bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 {
		data = Compact(data)
	}
	p := parser{m: &Message{raw: data}}
	if err := p.parseDocument(); err != nil {
		return nil, err
	}
	if err := p.classify(); err != nil {
		if p.m.ID == "" || p.m.ID == Null {
			return nil, err
		}
		return p.m, err
	}
	return p.m, nil
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

// parser collects the members of the message at the top level.
type parser struct {
	m       *Message
	version span
	method  span
}

func (p *parser) parseDocument() error {
	data := p.m.raw
	if len(data) == 0 {
		return Errorf(CodeParseError, "invalid JSON: the message is empty")
	}
	var (
		end int
		err error
	)
	if data[0] == '{' {
		end, err = skipObject(data, 0, 0, p.noteMember)
	} else {
		end, err = skipValue(data, 0, 0)
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if err == nil && end < len(data) {
		err = &syntaxError{end, "more data after the message"}
	}
	switch {
	case err != nil:
		return Errorf(CodeParseError, "invalid JSON: %v", err)
	case data[0] == '[':
		return Errorf(CodeInvalidRequest, "batches are not supported: send one message at a time")
	case data[0] != '{':
		return Errorf(CodeInvalidRequest, "a JSON-RPC message is an object")
	}
	return nil
}

func (p *parser) noteMember(name, value span) error {
	key := unquote(p.m.raw, name)
	var at *span
	switch string(key) {
	case "jsonrpc":
		at = &p.version
	case "id":
		at = &p.m.id
	case "method":
		at = &p.method
	case "params":
		at = &p.m.params
	case "result":
		at = &p.m.result
	case "error":
		at = &p.m.fault
	default:
		p.m.ambiguous = p.m.ambiguous || matchesFold(key)
		return nil
	}
	if at.present() {
		return Errorf(CodeInvalidRequest, "duplicate member %q", key)
	}
	*at = value
	return nil
}

// matchesFold reports whether key is the name of a JSON-RPC member, ignoring case.
func matchesFold(key []byte) bool {
	for _, name := range [...]string{"jsonrpc", "id", "method", "params", "result", "error"} {
		if bytes.EqualFold(key, []byte(name)) {
			return true
		}
	}
	return false
}

func (p *parser) classify() error {
	m := p.m
	if m.id.present() {
		if err := checkID(m.part(m.id)); err != nil {
			return err
		}
		m.ID = ID(m.part(m.id))
	}
	if string(m.part(p.version)) != `"2.0"` {
		return Errorf(CodeInvalidRequest, `member "jsonrpc" must be "2.0"`)
	}
	if p.method.present() {
		return p.classifyCall()
	}
	switch {
	case m.result.present() == m.fault.present():
		return Errorf(CodeInvalidRequest, `a message has either "method", "result" or "error"`)
	case !m.id.present():
		m.ID = Null // tolerated: some servers leave it out (JSON-RPC 2.0 section 5 wants null)
	}
	m.Kind = Response
	return nil
}

func (p *parser) classifyCall() error {
	m := p.m
	if m.raw[p.method.from] != '"' {
		return Errorf(CodeInvalidRequest, `member "method" must be a string`)
	}
	if m.result.present() || m.fault.present() {
		return Errorf(CodeInvalidRequest, `a message with "method" has neither "result" nor "error"`)
	}
	if params := m.part(m.params); params != nil && !bytes.ContainsRune([]byte("{[n"), rune(params[0])) {
		return Errorf(CodeInvalidRequest, `member "params" must be an object or an array`)
	}
	if p.method.to-p.method.from > MaxMethodBytes {
		return Errorf(CodeInvalidRequest, "the method is longer than %d bytes", MaxMethodBytes)
	}
	m.Method = string(unquote(m.raw, p.method))
	switch m.ID {
	case "":
		m.Kind = Notification
	case Null:
		return Errorf(CodeInvalidRequest, "the id of a request must not be null")
	default:
		m.Kind = Request
	}
	return nil
}

func checkID(raw []byte) error {
	if len(raw) > MaxIDBytes {
		return Errorf(CodeInvalidRequest, "the id is longer than %d bytes", MaxIDBytes)
	}
	switch c := raw[0]; {
	case c == '"', c == '-', c >= '0' && c <= '9', c == 'n':
		return nil
	}
	return Errorf(CodeInvalidRequest, "the id must be a string or a number")
}

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
	from := skipSpace(obj, 0)
	if from >= len(obj) || obj[from] != '{' {
		return obj
	}
	end, err := skipObject(obj, from, 0, nil)
	if err != nil || skipSpace(obj, end) < len(obj) {
		return obj
	}
	added := string(quote(name)) + ":" + string(value)
	if skipSpace(obj, from+1) < end-1 {
		added = "," + added
	}
	return splice(obj, span{end - 1, end - 1}, added)
}

// RemoveMember returns obj without its members of that name, and obj itself if there
// are none.
func RemoveMember(obj json.RawMessage, name string) json.RawMessage {
	from := skipSpace(obj, 0)
	if from >= len(obj) || obj[from] != '{' {
		return obj
	}
	out := make([]byte, 0, len(obj))
	kept, removed, last := 0, false, from+1
	var gap []byte // before the current member, or the removed ones before it; nil: not seen yet
	end, err := skipObject(obj, from, 0, func(n, value span) error {
		if last == from+1 { // the first one
			out = append(out, obj[:n.from]...)
		}
		if gap == nil {
			gap = obj[last:n.from:n.from]
		}
		last = value.to
		if string(unquote(obj, n)) == name {
			removed = true
			return nil
		}
		if kept++; kept > 1 {
			out = append(out, gap...)
		}
		out, gap = append(out, obj[n.from:value.to]...), nil
		return nil
	})
	if err != nil || !removed || skipSpace(obj, end) < len(obj) {
		return obj
	}
	return append(out, obj[last:]...)
}

func find(obj []byte, names []string) (span, bool) {
	at := span{skipSpace(obj, 0), len(obj)}
	for _, want := range names {
		if at.from >= len(obj) || obj[at.from] != '{' {
			return span{}, false
		}
		var found span
		end, err := skipObject(obj, at.from, 0, func(name, value span) error {
			if string(unquote(obj, name)) == want {
				found = value
			}
			return nil
		})
		if err != nil || !found.present() || skipSpace(obj, end) < at.to {
			return span{}, false
		}
		at = found
	}
	return at, at.present()
}

// Text returns the string whose JSON form is raw. It reports false if raw is not a
// JSON string.
func Text(raw json.RawMessage) (string, bool) {
	text, ok := TextBytes(raw)
	return string(text), ok
}

// TextBytes is Text. Its result is part of raw if raw has no escapes.
func TextBytes(raw json.RawMessage) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	if end, err := skipString(raw, 0); err != nil || end != len(raw) {
		return nil, false
	}
	return unquote(raw, span{0, len(raw)}), true
}

// String describes the message without its content, for logs.
func (m *Message) String() string {
	return fmt.Sprintf("%s %s (%d bytes)", m.Kind, m.Method, len(m.raw))
}
