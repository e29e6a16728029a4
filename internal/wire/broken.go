package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// AnsweredID returns the id in a broken JSON-RPC response: data that Parse refuses, because
// it is no JSON (NaN, a raw control character, a trailing comma, single quotes, a line cut
// short) or no response (both a result and an error). It reports false if data has no readable id or
// several; if it has a method, because then the id is the sender's own; or if it may be a line of a
// log. A response has no members but those of its envelope, and either has a member "jsonrpc", or has an
// object as result. whole reports whether the id ends before data does: if not, it
// may be the beginning of a longer id.
//
// Strings may stand in double or single quotes. Only members of the outermost object count, and
// nothing after its end.
func AnsweredID(data []byte) (id jsonrpc.ID, whole, ok bool) {
	s := brokenScan{data: data}
	named, isObject := false, false
	for first := true; ; first = false {
		name, value, more := s.member()
		if !more {
			break
		}
		if !slices.Contains(responseMembers, string(name)) || first && !beginsWithMember(data) {
			return "", false, false
		}
		switch string(name) {
		case "id":
			next := idOf(value)
			if next == "" || id != "" && id != next {
				return "", false, false
			}
			id, whole = next, s.at+len(value) < len(data)
		case "jsonrpc":
			named = true
		case "result":
			isObject = isObject || s.at < len(data) && data[s.at] == '{'
		}
	}
	if isResponse := named || isObject; id == "" || !isResponse {
		return "", false, false
	}
	return id, whole, true
}

// responseMembers are the members of a response.
var responseMembers = []string{"jsonrpc", "id", "result", "error"}

// beginsWithMember reports whether data begins as an object whose first member has a name in quotes.
func beginsWithMember(data []byte) bool {
	at := rawjson.SkipSpace(data, 0)
	if at >= len(data) || data[at] != '{' {
		return false
	}
	at = rawjson.SkipSpace(data, at+1)
	return at < len(data) && (data[at] == '"' || data[at] == '\'')
}

// RequestIDInFront returns the id of a request of which data is the beginning, if id and method stand there;
// empty otherwise.
func RequestIDInFront(data []byte) (id jsonrpc.ID) {
	s := brokenScan{data: data}
	isRequest := false
	for id == "" || !isRequest {
		name, value, more := s.member()
		switch {
		case !more || s.at+len(value) >= len(data):
			return ""
		case string(name) == "id":
			id = idOf(value)
		case string(name) == "method":
			isRequest = len(value) > 0
		case bytes.EqualFold(name, []byte("id")):
			return "" // parsers disagree on which is the id
		}
	}
	return id
}

// IsMessage reports whether an object names its version and has only members of a JSON-RPC message, and "_meta".
// One that has others may be a line of a log.
func IsMessage(object json.RawMessage) bool {
	named, others := false, false
	end, err := rawjson.SkipObject(object, rawjson.SkipSpace(object, 0), 0, func(name, _ rawjson.Span) error {
		member := string(rawjson.Unquote(object, name))
		named = named || member == "jsonrpc"
		others = others || !slices.Contains(responseMembers, member) && !slices.Contains(requestMembers, member)
		return nil
	})
	return named && !others && err == nil && end > 0
}

// requestMembers are the members of a request beside those of a response.
var requestMembers = []string{"method", "params", "_meta"}

// IsBareResponse reports whether an object has the members of a response and no others. Without a
// "jsonrpc", an object that has others is more likely a line of a log.
func IsBareResponse(object json.RawMessage) bool {
	others := false
	end, err := rawjson.SkipObject(object, rawjson.SkipSpace(object, 0), 0, func(name, _ rawjson.Span) error {
		others = others || !slices.Contains(responseMembers, string(rawjson.Unquote(object, name)))
		return nil
	})
	return err == nil && end > 0 && !others
}

// IsCutBy reports whether data, which is no JSON, is the beginning of JSON that goes over into
// other JSON at an offset: nothing that begins there as an object can stand there.
func IsCutBy(data []byte, offset int) bool {
	_, err := rawjson.SkipValue(data, rawjson.SkipSpace(data, 0), 0)
	fault, ok := errors.AsType[*rawjson.SyntaxError](err)
	// In a string, the first quote of the other object ends it, and the next letter is the fault.
	return ok && (fault.At == offset || fault.At == offset+len(`{"`))
}

// NamesVersion reports whether data, which need not be JSON, has something like a member
// "jsonrpc", which lines of logs have not.
func NamesVersion(data []byte) bool {
	const name = "jsonrpc"
	for {
		at := bytes.Index(data, []byte(name))
		if at < 0 {
			return false
		}
		after := data[at+len(name):]
		if at > 0 && len(after) > 0 && (data[at-1] == '"' || data[at-1] == '\'') && after[0] == data[at-1] {
			after = bytes.TrimLeft(after[1:], " \t")
			if len(after) > 0 && after[0] == ':' {
				return true
			}
		}
		data = data[at+len(name):]
	}
}

// idOf returns the id that a value is, with a string in double quotes; empty if it is none.
func idOf(value []byte) jsonrpc.ID {
	if n := len(value); n >= 2 && value[0] == '\'' && value[n-1] == '\'' {
		value = append(append([]byte{'"'}, value[1:n-1]...), '"')
	}
	end, err := rawjson.SkipValue(value, 0, 0)
	if err != nil || end != len(value) || end > jsonrpc.MaxIDBytes || strings.IndexByte(`"-0123456789`, value[0]) < 0 {
		return ""
	}
	return jsonrpc.ID(value)
}

// Outermost returns the object or array with which data begins, which need not be JSON: up to the
// bracket that closes it or, closed being false, all of data.
func Outermost(data []byte) (value []byte, closed bool) {
	s := brokenScan{data: data}
	for s.at < len(data) {
		switch data[s.at] {
		case '{', '[':
			s.depth++
		case '}', ']':
			s.depth--
			if s.depth == 0 {
				return data[: s.at+1 : s.at+1], true
			}
		case '"', '\'':
			s.text()
			continue
		}
		s.at++
	}
	return data, false
}

// brokenScan finds the members of the outermost object in what need not be JSON.
type brokenScan struct {
	data  []byte
	at    int
	depth int
}

// member returns the next member of the outermost object: its name, and its value if that
// ends before the data does.
func (s *brokenScan) member() (name, value []byte, ok bool) {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case '{', '[':
			s.depth++
		case '}', ']':
			s.depth--
			if s.depth == 0 {
				return nil, nil, false
			}
		case '"', '\'':
			text := s.text()
			if after := rawjson.SkipSpace(s.data, s.at); s.depth == 1 && after < len(s.data) && s.data[after] == ':' {
				return text, s.value(rawjson.SkipSpace(s.data, after+1)), true
			}
			continue
		}
		s.at++
	}
	return nil, nil, false
}

// text returns the string that begins here, without its quotes, and goes to its end.
func (s *brokenScan) text() []byte {
	quote, from := s.data[s.at], s.at+1
	for s.at = from; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case quote:
			s.at++
			return s.data[from : s.at-1]
		}
	}
	s.at = len(s.data)
	return nil
}

// value returns the string or number at an offset, nil if it is another value or a string that is
// cut short. It stays where it is: member goes on from there.
func (s *brokenScan) value(from int) []byte {
	s.at = from
	if from >= len(s.data) {
		return nil
	}
	end := from
	if c := s.data[from]; c == '"' || c == '\'' {
		if s.text() == nil {
			return nil
		}
		end = s.at
	} else {
		for end < len(s.data) && bytes.IndexByte([]byte(",}] \t\"'"), s.data[end]) < 0 {
			end++
		}
		if end < len(s.data) && (s.data[end] == '"' || s.data[end] == '\'') {
			// No value goes on so. The next member begins here: to look further for each of
			// many would take the square of their number.
			return nil
		}
	}
	s.at = from
	return s.data[from:end]
}

// Mend returns a response whose envelope differs from JSON-RPC 2.0 in a way that servers are known for, as
// JSON-RPC 2.0 has it: it lacks "jsonrpc":"2.0", or it has a null beside its result or its error, also as its
// method: some programs have one type for all messages. It returns nil for anything else: lines of logs are JSON
// objects too, and may have an id, a method ("GET"), an error ("boom") or a result ("done"). Without a "jsonrpc", a
// response has an id, and either a result that is an object or an error with a number as its code.
// TestReportsOfServers has a report for each way.
func Mend(data []byte) []byte {
	for _, name := range []string{"method", "result", "error"} {
		if value, has := rawjson.Member(data, name); has && string(value) == "null" {
			data = rawjson.RemoveMember(data, name)
		}
	}
	_, named := rawjson.Member(data, "jsonrpc")
	result, hasResult := rawjson.Member(data, "result")
	fault, hasError := rawjson.Member(data, "error")
	_, hasID := rawjson.Member(data, "id")
	if _, hasMethod := rawjson.Member(data, "method"); hasMethod || !hasID || hasResult == hasError {
		return nil
	}
	if named {
		return data
	}
	code, _ := rawjson.Member(fault, "code")
	isError := len(code) > 0 && (code[0] == '-' || code[0] >= '0' && code[0] <= '9')
	if !isError && (!hasResult || result[0] != '{') {
		return nil
	}
	return addVersion(data)
}

// addVersion adds "jsonrpc":"2.0" to an object that has other members.
func addVersion(object []byte) []byte {
	object = bytes.TrimLeft(object, " \t\r\n")
	return append([]byte(`{"jsonrpc":"2.0",`), object[1:]...)
}

// ParseClient is [jsonrpc.Parse] for what a client sends: a message that lacks nothing but
// "jsonrpc":"2.0" gets it. Clients print no logs there, so a method shows a request.
func ParseClient(data []byte) (*jsonrpc.Message, error) {
	m, err := jsonrpc.Parse(data)
	if err == nil {
		return m, nil
	}
	if _, has := rawjson.Member(data, "jsonrpc"); has {
		return m, err
	}
	if mended := Mend(data); mended != nil {
		return jsonrpc.Parse(mended)
	}
	if _, has := rawjson.Member(data, "method"); has {
		return jsonrpc.Parse(addVersion(data))
	}
	return m, err
}
