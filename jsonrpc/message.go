package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// MaxMethodBytes is the longest method name, in bytes of its JSON form, that Parse
// accepts. The gateway remembers the name while the request is unanswered.
const MaxMethodBytes = 1024

// MaxDepth is how deeply arrays and objects may nest in a message. Peers parse
// recursively and some die of depth; no MCP message comes near it.
const MaxDepth = 512

// Package rawjson has the same bound. With another one this index is out of range, and nothing compiles.
var _ = [1]struct{}{}[MaxDepth-rawjson.MaxDepth]

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
	// Trace is the W3C trace context of that HTTP request, by the names of the headers; nil
	// without tracing.
	Trace map[string]string
	// Token is the progress token: of a request, params._meta.progressToken; of
	// notifications/progress, params.progressToken. RequestID is params.requestId of
	// notifications/cancelled. Other notifications have neither.
	Token, RequestID Place

	raw                       []byte
	id, params, result, fault rawjson.Span
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

func (m *Message) part(s rawjson.Span) json.RawMessage {
	if !s.Present() {
		return nil
	}
	return json.RawMessage(m.raw[s.From:s.To:s.To])
}

// Place is a value in a message. The zero Place is nowhere.
type Place struct {
	// Value is the value as it came; nil if there is none.
	Value json.RawMessage
	// Ambiguous says that parsers disagree on the value: a member on the way to it has a
	// duplicate (the last counts here), or a sibling that differs only in case.
	Ambiguous bool

	from int // where Value begins in the message
}

// Text returns the string whose JSON form is the value. It reports false if the value is not a JSON string.
func (p Place) Text() (string, bool) { return rawjson.Text(p.Value) }

func (p Place) span() rawjson.Span { return rawjson.Span{From: p.from, To: p.from + len(p.Value)} }

// Param returns the place of the value found by following names down from the params.
func (m *Message) Param(names ...string) (p Place) {
	at := m.params
	for _, name := range names {
		if !at.Present() || m.raw[at.From] != '{' {
			at = rawjson.Span{}
			break
		}
		var single bool
		at, single = m.findMember(at, name)
		p.Ambiguous = p.Ambiguous || !single
	}
	p.Value, p.from = m.part(at), at.From
	return p
}

// findMember finds a member of the object at obj, which is valid: it is part of a
// message. single says that no sibling has its name, ignoring case.
func (m *Message) findMember(obj rawjson.Span, want string) (found rawjson.Span, single bool) {
	single = true
	_, _ = rawjson.SkipObject(m.raw, obj.From, 0, func(name, value rawjson.Span) error {
		key := rawjson.Unquote(m.raw, name)
		switch {
		case string(key) == want:
			single = single && !found.Present()
			found = value
		case len(key) >= len(want) && bytes.EqualFold(key, []byte(want)):
			single = false
		}
		return nil
	})
	return found, single
}

// WithID returns the message's bytes with id in place of its own and all else
// unchanged. The caller must not change them. A message without that member, such as a
// response that names no request, gets it as its first.
func (m *Message) WithID(id ID) []byte {
	switch {
	case !m.id.Present():
		return rawjson.Splice(m.raw, rawjson.Span{From: 1, To: 1}, `"id":`+string(id)+`,`)
	case m.ID == id:
		return m.raw
	}
	return rawjson.Splice(m.raw, m.id, string(id))
}

// WithValue returns the message's bytes with value at p, and all else unchanged.
func (m *Message) WithValue(p Place, value json.RawMessage) []byte {
	return rawjson.Splice(m.raw, p.span(), string(value))
}

// Renumbered returns the bytes of a request with id in place of its own id and of its
// progress token, if it has one.
func (m *Message) Renumbered(id ID) []byte {
	first, second := m.id, m.Token.span()
	if !second.Present() {
		return m.WithID(id)
	}
	if second.From < first.From {
		first, second = second, first
	}
	out := make([]byte, 0, len(m.raw)+2*len(id))
	out = append(append(out, m.raw[:first.From]...), id...)
	out = append(append(out, m.raw[first.To:second.From]...), id...)
	return append(out, m.raw[second.To:]...)
}

// RenumberedParams returns the params that Renumbered puts into the message.
func (m *Message) RenumberedParams(id ID) json.RawMessage {
	token := m.Token.span()
	if !token.Present() {
		return m.Params()
	}
	at := rawjson.Span{From: token.From - m.params.From, To: token.To - m.params.From}
	return rawjson.Splice(m.Params(), at, string(id))
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
	if !utf8.Valid(data) {
		return nil, Errorf(CodeParseError, "invalid JSON: it is not UTF-8")
	}
	data = bytes.Trim(data, " \t\r\n") // JSON's white space, which is less than Unicode's
	if bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 {
		data = rawjson.Compact(data)
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

// parser collects the members of the message at the top level.
type parser struct {
	m       *Message
	version rawjson.Span
	method  rawjson.Span
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
		end, err = rawjson.SkipObject(data, 0, 0, p.noteMember)
	} else {
		end, err = rawjson.SkipValue(data, 0, 0)
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if err == nil && end < len(data) {
		err = &rawjson.SyntaxError{At: end, Reason: "more data after the message"}
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

func (p *parser) noteMember(name, value rawjson.Span) error {
	key := rawjson.Unquote(p.m.raw, name)
	var at *rawjson.Span
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
	if at.Present() {
		return Errorf(CodeInvalidRequest, "duplicate member %q", key)
	}
	*at = value
	return nil
}

// matchesFold reports whether key is the name of a JSON-RPC member, ignoring case.
func matchesFold(key []byte) bool {
	return slices.ContainsFunc([]string{"jsonrpc", "id", "method", "params", "result", "error"},
		func(name string) bool {
			return bytes.EqualFold(key, []byte(name))
		})
}

func (p *parser) classify() error {
	m := p.m
	if m.id.Present() {
		if err := checkID(m.part(m.id)); err != nil {
			return err
		}
		m.ID = ID(m.part(m.id))
	}
	if string(m.part(p.version)) != `"2.0"` {
		return Errorf(CodeInvalidRequest, `member "jsonrpc" must be "2.0"`)
	}
	if p.method.Present() {
		return p.classifyCall()
	}
	switch {
	case m.result.Present() == m.fault.Present():
		return Errorf(CodeInvalidRequest, `a message has either "method", "result" or "error"`)
	case !m.id.Present():
		m.ID = Null // tolerated: some servers leave it out (JSON-RPC 2.0 section 5 wants null)
	}
	m.Kind = Response
	return nil
}

func (p *parser) classifyCall() error {
	m := p.m
	if m.raw[p.method.From] != '"' {
		return Errorf(CodeInvalidRequest, `member "method" must be a string`)
	}
	if m.result.Present() || m.fault.Present() {
		return Errorf(CodeInvalidRequest, `a message with "method" has neither "result" nor "error"`)
	}
	if params := m.part(m.params); params != nil && !bytes.ContainsRune([]byte("{[n"), rune(params[0])) {
		return Errorf(CodeInvalidRequest, `member "params" must be an object or an array`)
	}
	if p.method.To-p.method.From > MaxMethodBytes {
		return Errorf(CodeInvalidRequest, "the method is longer than %d bytes", MaxMethodBytes)
	}
	m.Method = string(rawjson.Unquote(m.raw, p.method))
	switch m.ID {
	case "":
		m.Kind = Notification
		switch m.Method { // not those of MCP's other notifications, which may be large
		case "notifications/progress":
			m.Token = m.Param("progressToken")
		case "notifications/cancelled":
			m.RequestID = m.Param("requestId")
		}
	case Null:
		return Errorf(CodeInvalidRequest, "the id of a request must not be null")
	default:
		m.Kind = Request
		m.Token = m.Param("_meta", "progressToken")
	}
	return nil
}

// String describes the message without its content, for logs.
func (m *Message) String() string {
	return fmt.Sprintf("%s %s (%d bytes)", m.Kind, m.Method, len(m.raw))
}
