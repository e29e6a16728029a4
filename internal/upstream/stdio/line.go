package stdio

import (
	"bytes"
	"encoding/json"
	"regexp"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/wire"
)

// Stdout is for MCP: one JSON message a line. Servers write other things there too, and
// dress their messages up. This file says what a line is.

// content is what a line of stdout has for the session.
type content struct {
	messages []message // in their order
	text     []byte    // what is no message: all, or what stands before the first one; nil: none
	// part: the line is, or begins, JSON over several lines, which may be secret.
	part bool
}

// message is a message on stdout.
type message struct {
	data []byte
	form wire.Form
}

// read says what a line is. parts says that the line before was, or began, JSON over
// several lines. The first row that fits counts:
//
//	before the first message            | after it                             | the line is
//	------------------------------------|--------------------------------------|--------------------------
//	noise                               | messages, and noise                  | messages: wire.Plain
//	[                                   | messages, commas and noise, then ]   | messages: wire.InList
//	noise, a title, then a bare prompt  | messages, and noise                  | messages: wire.AfterPrompt
//	words without quotes or brackets    | noise                                | a message: wire.AfterWords
//	noise                               | it names its version, but is broken  | a broken message
//	noise                               | { that does not end                  | a part of JSON over several lines
//	anything else                       |                                      | text
//
// Noise is what no line of a log begins with. Servers print what others wrote, such as the title of a
// web page or the words of another client, and do it carefully: behind a word, in quotes, in a list,
// escaped. So a message is never looked for inside of text, and what may be text is told to the session,
// which knows what it expects.
//
// A whole message is an object with a member "jsonrpc", whether valid or not, or one that lacks
// nothing else. One with members of its own is a line of a log, and text. A broken one is no JSON, but
// the id of a request can be read from it. After text it is one only if it is written as JSON is, names
// its version and ends: a server that logs what it sends prints it in the notation of its language, or
// shortened, and then sends it whole. An object inside another one, such as a line of a log or a broken
// message, is no message.
func read(line []byte, parts bool) content {
	line = bytes.Trim(line, " \t\r\n\x00")
	if len(line) == 0 {
		return content{}
	}
	at, form := beginning(line)
	messages, size := messagesAt(line[at:], form)
	rest := line[at:]
	opens, ends := rest[0] == '{' && form == wire.Plain, rest[len(rest)-1] == '}'
	switch {
	case len(messages) > 0 && size == len(rest):
		last := messages[len(messages)-1].data
		return content{messages: messages, text: bytes.Trim(line[:at:at], byteOrderMark+" \t\x00"),
			part: opens && !json.Valid(last) && !closes(last)}
	case len(messages) > 0 && form == wire.Plain: // what the messages say may be secret
		return content{text: rest[size:]}
	case opens && ends && closes(rest) && !json.Valid(rest) && wire.NamesVersion(rest):
		return content{messages: []message{{rest, brokenForm(rest, true)}}}
	case opens && !ends, parts:
		return content{part: true}
	}
	return content{text: line}
}

// byteOrderMark is that of UTF-8. Programs of Windows begin a file with it.
const byteOrderMark = "\uFEFF"

// These may stand around messages. The title of a terminal is an escape sequence too, but has a text.
const (
	aNoise = `(?:[\x00-\x1a\x1c-\x20\x7f]|\x{FEFF}|\x1b\[[0-?]*[ -/]*[@-Z\\^-~]|` +
		`\x1b[ -/]+[0-Z]|\x1b[=>78cDEHMNOZ\\]|\x1b)`
	aTitle = `(?:\x1b\][^\a\x1b]*(?:\a|\x1b\\))`
)

var (
	notText      = regexp.MustCompile(`^` + aNoise + `*`)
	notTextAtEnd = regexp.MustCompile(`^(?:` + aTitle + `|` + aNoise + `)*$`)
	prompt       = regexp.MustCompile(`^(?:` + aTitle + `|` + aNoise + `)*(?:(?:>>>|[>$#])[ \t])?` + aNoise + `*`)
)

// quotesAndBrackets are what careful programs put around a text that others wrote.
const quotesAndBrackets = "\"'`´‘’‚‛“”„‟‹›«»「」『』(){}[]<"

// beginning returns the offset of the first thing in a line that may be a message, and the form that
// messages there have. The offset is less than the length of the line, which has no white space at its
// ends.
func beginning(line []byte) (at int, form wire.Form) {
	at = min(len(notText.Find(line)), len(line)-1)
	switch line[at] {
	case '{':
		return at, wire.Plain
	case '[':
		return at, wire.InList
	}
	if after := len(prompt.Find(line)); after > at && after < len(line) && line[after] == '{' {
		return after, wire.AfterPrompt
	}
	if first := bytes.IndexAny(line, quotesAndBrackets); first > 0 && line[first] == '{' {
		return first, wire.AfterWords
	}
	return at, wire.Plain
}

// messagesAt returns the messages that a text begins with, which have nothing but noise between them,
// and commas in a list. size is that of the text if it has nothing else, or of the messages and the
// noise.
func messagesAt(text []byte, form wire.Form) (found []message, size int) {
	at := 0
	if form == wire.InList {
		at++
	}
	for {
		at += len(notText.Find(text[at:]))
		some, n := messageAt(text[at:], form)
		if n == 0 && form == wire.InList { // without its end it may be one of a log
			return nil, at
		} else if n == 0 {
			return found, at
		}
		found = append(found, some...)
		at += n
		if form != wire.InList && notTextAtEnd.Match(text[at:]) {
			return found, len(text)
		}
		at += len(notText.Find(text[at:]))
		switch {
		case form == wire.InList && at < len(text) && text[at] == ',':
			at++
			continue
		case form == wire.InList && at < len(text) && text[at] == ']':
			if at++; notTextAtEnd.Match(text[at:]) {
				at = len(text)
			}
			return found, at
		case form == wire.InList:
			return nil, at
		case form == wire.AfterWords:
			return nil, at
		}
	}
}

// messageAt returns the message that a text begins with and its size, 0 if there is none. A message that
// is cut by another one, with which the text ends, counts as one with that: a server that writes without a
// lock may begin a message, and write another one and the end of the line before it goes on.
func messageAt(text []byte, form wire.Form) (found []message, size int) {
	if len(text) == 0 || text[0] != '{' {
		return nil, 0
	}
	if value := rawjson.FirstValue(text); value != nil {
		if !isMessage(value) {
			return nil, 0
		}
		return []message{{value, form}}, len(value)
	}
	value, closed := wire.Outermost(text)
	if form != wire.Plain {
		if !closed || !isBroken(value) || !isWrittenAsJSON(value) {
			return nil, 0
		}
		return []message{{value, form}}, len(value)
	}
	if !closed {
		if last := whole(text); last > 0 {
			if value = text[:last:last]; isBroken(value) {
				found = append(found, message{value, wire.Broken})
			}
			return append(found, message{text[last:], form}), len(text)
		}
	}
	if !isBroken(value) {
		return nil, 0
	}
	return []message{{value, brokenForm(value, closed)}}, len(value)
}

// whole returns the offset of the whole message with which a text ends that begins as another one, 0 if
// there is none. That other one is JSON up to there and has no place for an object there, so that the last
// message is not inside it.
func whole(text []byte) int {
	last := bytes.LastIndex(text, []byte(messageBegins))
	if last <= 0 || !bytes.HasPrefix(text, []byte(messageBegins[:2])) ||
		len(rawjson.FirstValue(text[last:])) != len(text)-last || !wire.IsCutBy(text, last) {
		return 0
	}
	return last
}

// closes reports whether an object, which need not be JSON, ends with its text.
func closes(text []byte) bool {
	value, closed := wire.Outermost(text)
	return closed && len(value) == len(text)
}

// isBroken reports whether an object that is no JSON is a message with an id.
func isBroken(object []byte) bool {
	_, _, answers := wire.AnsweredID(object)
	return answers
}

// isWrittenAsJSON reports whether a broken object begins as one of JSON, and names the version of JSON-RPC.
func isWrittenAsJSON(object []byte) bool {
	return brokenForm(object, true) == wire.Plain && wire.NamesVersion(object)
}

// brokenForm returns the form of a broken message that stands alone. closed says that it ends.
func brokenForm(object []byte, closed bool) wire.Form {
	members := bytes.TrimLeft(object[1:], " \t")
	if closed && len(members) > 0 && members[0] == '"' {
		return wire.Plain
	}
	return wire.Broken
}

// messageBegins is how most messages begin.
const messageBegins = `{"jsonrpc"`

// isMessage reports whether a JSON object is a message. An object with members of its own is a line of a log, as pino
// and zap write them, even if it has the members of a message too: some servers merge what they got into their log.
func isMessage(object json.RawMessage) bool {
	return wire.IsMessage(object) || wire.Mend(object) != nil && wire.IsBareResponse(object)
}

// valid returns line with U+FFFD in the place of what is not UTF-8.
func valid(line []byte) []byte {
	if utf8.Valid(line) {
		return line
	}
	return bytes.ToValidUTF8(line, []byte("\uFFFD"))
}
