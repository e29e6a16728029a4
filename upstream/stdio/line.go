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
	messages [][]byte // in their order
	text     []byte   // what is no message: all, or what stood before the first one; nil: none
	// part: the line is, or begins, JSON over several lines, which may be secret.
	part bool
}

// byteOrderMark is that of UTF-8. Programs of Windows begin a file with it.
const byteOrderMark = "\uFEFF"

// maxPlaces bounds the places in a line at which JSON is looked for and not found.
const maxPlaces = 16

// read says what a line is. parts says that the line before was, or began, JSON over
// several lines. The first row that fits counts:
//
//	the line has                                          | and is
//	------------------------------------------------------|----------------------------------------
//	whole messages, one after the other or in arrays      | these messages, and the text before them;
//	                                                      | a broken one may follow
//	{… from which an id can be read, but is broken        | a broken message, and the text before it
//	{…} with a member "jsonrpc", but is broken            | a broken message
//	{… that does not end, and what is no message after it | a part of JSON over several lines
//	anything else                                         | text
//
// A whole message is an object with a member "jsonrpc", whether valid or not, or one that lacks
// nothing else. What is inside another object, such as a line of a log, is none.
func read(line []byte, parts bool) content {
	line = bytes.Trim(bytes.TrimPrefix(line, []byte(byteOrderMark)), " \t\r\n\x00")
	if len(line) == 0 {
		return content{}
	}
	c, rest := wholeMessages(line)
	begin, broken := brokenMessage(rest)
	opens, ends := line[0] == '{', line[len(line)-1] == '}'
	switch {
	case len(c.messages) > 0:
		if broken != nil {
			c.messages = append(c.messages, broken)
		}
		return c
	case broken != nil:
		return content{messages: [][]byte{broken}, text: line[:begin], part: opens && !ends}
	case opens && ends && !json.Valid(line) && jsonrpc.NamesVersion(line):
		return content{messages: [][]byte{line}}
	case opens && !ends, parts:
		return content{part: true}
	}
	return content{text: line}
}

// brokenMessage finds a broken message with an id in a text, and where it begins; nil if there is
// none.
func brokenMessage(text []byte) (begin int, broken []byte) {
	begin = bytes.IndexByte(text, '{')
	if begin < 0 || json.Valid(text[begin:]) {
		return 0, nil
	}
	if _, _, answers := jsonrpc.AnsweredID(text[begin:]); !answers {
		return 0, nil
	}
	return begin, text[begin:]
}

// wholeMessages finds the messages in a line, which may have text between them, such as the escape
// sequence of a terminal or a prompt. rest is what comes after the last one.
func wholeMessages(line []byte) (c content, rest []byte) {
	rest = line
	for at, misses := 0, 0; misses < maxPlaces; {
		next := bytes.IndexAny(line[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		value := jsonrpc.FirstValue(line[at:])
		if value == nil {
			at++
			misses++
			continue
		}
		if found := messagesIn(value); len(found) > 0 {
			if len(c.messages) == 0 {
				c.text = line[:at]
			}
			c.messages = append(c.messages, found...)
			rest = line[at+len(value):]
		}
		at += len(value)
	}
	return c, rest
}

// messagesIn returns the message that a value is, or those of an array of messages.
func messagesIn(value json.RawMessage) (all [][]byte) {
	if value[0] == '{' {
		if isMessage(value) {
			all = append(all, value)
		}
		return all
	}
	isBatch := true
	jsonrpc.Each(value, func(one json.RawMessage) {
		isBatch = isBatch && isMessage(one)
		all = append(all, one)
	})
	if !isBatch {
		return nil
	}
	return all
}

func isMessage(value json.RawMessage) bool {
	if bytes.HasPrefix(value, []byte(`{"jsonrpc"`)) { // most: no need to read it again
		return true
	}
	_, isRPC := jsonrpc.Member(value, "jsonrpc")
	return isRPC || jsonrpc.Mend(value) != nil
}

// valid returns line with U+FFFD in the place of what is not UTF-8.
func valid(line []byte) []byte {
	if utf8.Valid(line) {
		return line
	}
	return bytes.ToValidUTF8(line, []byte("\uFFFD"))
}
