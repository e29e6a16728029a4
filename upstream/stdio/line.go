package stdio

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Stdout is for MCP: one JSON message a line. Servers write other things there too, and
// dress their messages up. This file says what a line is.

// content is what a line of stdout has for the session.
type content struct {
	message []byte // nil: none
	text    []byte // what is no message and stood before it, or is all; nil: none
	// part: the line is, or begins, JSON over several lines, which may be secret.
	part bool
}

// byteOrderMark is that of UTF-8. Programs of Windows begin a file with it.
const byteOrderMark = "\uFEFF"

// maxPlaces bounds the places in a line at which a message is looked for.
const maxPlaces = 16

// read says what a line is. parts says that the line before was, or began, JSON over
// several lines. The first row that fits counts:
//
//	the line                                              | is
//	------------------------------------------------------|----------------------------------
//	{…} that speaks of JSON-RPC                           | a message, whether valid or not
//	{…} that lacks nothing but "jsonrpc"                  | a message
//	text, {…} that is one of both, and perhaps text       | text and a message
//	{… with an id and "jsonrpc", that does not end        | a broken message
//	{… that does not end, and what is no message after it | a part of JSON over several lines
//	[…] that speaks of JSON-RPC                           | a batch, which the session refuses
//	anything else                                         | text
func read(line []byte, parts bool) content {
	line = bytes.Trim(bytes.TrimPrefix(line, []byte(byteOrderMark)), " \t\r\n\x00")
	if len(line) == 0 {
		return content{}
	}
	opens, ends := line[0] == '{', line[len(line)-1] == '}'
	isRPC := bytes.Contains(line, []byte("jsonrpc"))
	switch {
	case opens && ends && isRPC:
		return content{message: line}
	case opens && ends && jsonrpc.WithVersion(line) != nil:
		return content{message: line}
	}
	if c := embedded(line); c.message != nil {
		return c
	}
	_, answers := jsonrpc.AnsweredID(line)
	switch {
	case opens && answers:
		return content{message: line, part: true}
	case opens && !ends, parts:
		return content{part: true}
	case line[0] == '[' && isRPC && json.Valid(line): // a batch: the session says that it takes none
		return content{message: line}
	}
	return content{text: line}
}

// embedded finds a message in a line that has text before or after it, such as the escape
// sequence of a terminal or a prompt.
func embedded(line []byte) content {
	at := 0
	for range maxPlaces {
		n := bytes.Index(line[at:], []byte(`{"`))
		if n < 0 {
			break
		}
		at += n
		if value := firstValue(line[at:]); isMessage(value) {
			return content{message: value, text: line[:at]}
		}
		at++
	}
	return content{}
}

// firstValue returns the JSON value with which data begins, nil if there is none.
func firstValue(data []byte) []byte {
	var value json.RawMessage
	if json.NewDecoder(bytes.NewReader(data)).Decode(&value) != nil {
		return nil
	}
	return value
}

func isMessage(value []byte) bool {
	_, isRPC := jsonrpc.Member(value, "jsonrpc")
	return isRPC || jsonrpc.WithVersion(value) != nil
}

// valid returns line with U+FFFD in the place of what is not UTF-8.
func valid(line []byte) []byte {
	if utf8.Valid(line) {
		return line
	}
	return bytes.ToValidUTF8(line, []byte("\uFFFD"))
}
