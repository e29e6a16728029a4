package stdio

import (
	"bytes"
	"encoding/json"
	"regexp"
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

// maxPlaces bounds the brackets in a line that nothing closes: for each, the line is read to its end.
const maxPlaces = 8

// maxOthers bounds the values in a line that are no message. What stands after them is not read.
const maxOthers = 1000

// read says what a line is. parts says that the line before was, or began, JSON over
// several lines. The first row that fits counts:
//
//	the line has                                          | and is
//	------------------------------------------------------|----------------------------------------
//	messages, one after the other or in arrays            | these messages, and the text before them
//	{…} with a member "jsonrpc", but is broken            | a broken message
//	{… that does not end                                  | a part of JSON over several lines
//	anything else                                         | text
//
// A whole message is an object with a member "jsonrpc", whether valid or not, or one that lacks
// nothing else. A broken one is no JSON, but the id of a request can be read from it. After text it
// is one only if it is written as JSON is, names its version and ends: a server that logs what it
// sends prints it in the notation of its language, or shortened, and then sends it whole. What is
// inside another object, such as a line of a log or a broken message, is none.
func read(line []byte, parts bool) content {
	line = bytes.Trim(bytes.TrimPrefix(line, []byte(byteOrderMark)), " \t\r\n\x00")
	if len(line) == 0 {
		return content{}
	}
	c := messagesOf(line)
	opens, ends := line[0] == '{', line[len(line)-1] == '}'
	switch {
	case len(c.messages) > 0:
		c.part = opens && !ends && len(c.text) == 0 && !json.Valid(c.messages[0])
		return c
	case opens && ends && !json.Valid(line) && jsonrpc.NamesVersion(line):
		return content{messages: [][]byte{line}}
	case opens && !ends, parts:
		return content{part: true}
	}
	return content{text: line}
}

// messagesOf finds the messages in a line, which may have text between them, such as the escape
// sequence of a terminal or a prompt.
func messagesOf(line []byte) (c content) {
	text := textAt(line)
	for at, places, others := 0, 0, 0; places < maxPlaces && others < maxOthers; {
		next := bytes.IndexAny(line[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		found, size := messagesAt(line[at:], at > text && len(c.messages) == 0)
		if size == 0 { // look inside
			size = 1
			places++
		}
		if len(found) == 0 {
			others++
		} else if len(c.messages) == 0 {
			c.text = line[:at]
		}
		c.messages = append(c.messages, found...)
		at += size
	}
	return c
}

// messagesAt returns the messages that a text begins with, and the size of what they are, or of what
// is none: {…} or […]. The size is 0 if a message may be inside: what nothing closes may be text such
// as a smiley, and an array that is no JSON may be a batch with a broken message. afterText says that
// the line has text before.
func messagesAt(text []byte, afterText bool) (found [][]byte, size int) {
	if value := jsonrpc.FirstValue(text); value != nil {
		return messagesIn(value), len(value)
	}
	value, closed := jsonrpc.Outermost(text)
	if !closed {
		value = beforeTheLast(value)
	}
	switch {
	case text[0] == '{' && isBroken(value) && (!afterText || closed && isWrittenAsJSON(value)):
		return [][]byte{value}, len(value)
	case !closed, text[0] == '[' && bytes.IndexByte(value, '{') >= 0:
		return nil, 0
	}
	return nil, len(value)
}

// beforeTheLast returns what stands before the whole message with which a text ends, else all of the
// text: a server that writes without a lock may begin a message, and write another one and the end of
// the line before it goes on.
func beforeTheLast(text []byte) []byte {
	last := bytes.LastIndex(text, []byte(messageBegins))
	if last <= 0 || len(jsonrpc.FirstValue(text[last:])) != len(text)-last {
		return text
	}
	return text[:last:last]
}

// isBroken reports whether an object that is no JSON is a message with an id.
func isBroken(object []byte) bool {
	_, _, answers := jsonrpc.AnsweredID(object)
	return answers
}

// isWrittenAsJSON reports whether a broken object begins as one of JSON, and names the version of JSON-RPC.
func isWrittenAsJSON(object []byte) bool {
	members := bytes.TrimLeft(object[1:], " \t")
	return len(members) > 0 && members[0] == '"' && jsonrpc.NamesVersion(object)
}

// notText matches what a terminal does not show as text, and the bracket of a batch.
var notText = regexp.MustCompile(`^(?:[\x00-\x1a\x1c-\x20\[]|\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\a]*\a|\x1b)*`)

// textAt returns the offset of the first text that a line has, its length if there is none.
func textAt(line []byte) int { return len(notText.Find(line)) }

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

// messageBegins is how most messages begin.
const messageBegins = `{"jsonrpc"`

func isMessage(value json.RawMessage) bool {
	if bytes.HasPrefix(value, []byte(messageBegins)) { // most: no need to read it again
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
