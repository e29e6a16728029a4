package tree

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// writeTwo says what to do about the paths of Windows.
const writeTwo = `in double quotes write \\ for each \, or in YAML use single quotes`

// mistakes say what to write in the place of what the parser does not understand, by a part of its message. Where
// one message has several reasons, the first line counts whose is holds for the place.
var mistakes = []struct {
	part string
	is   func(*token.Token) bool
	text string
}{
	{"found character '\t'", nil, tabs},
	{"tab character", nil, tabs},
	{"flow mapping end token '}'", nil, "its closing } is missing"},
	{"sequence end token ']'", nil, "its closing ] is missing"},
	{"or '}' must be specified", isReference, references},
	{"or ']' must be specified", isReference, references},
	{"or '}' must be specified", nil, "a comma or the closing } is missing before this"},
	{"or ']' must be specified", nil, "a comma or the closing ] is missing before this"},
	{"end character of", nil, "its closing quote is missing"},
	{"unknown escape character", nil, writeTwo},
	{"not enough length for escaped", nil, writeTwo},
	{"'@' is a reserved character", nil,
		`write a word that begins with '@' in quotes, as in [npx, -y, "@scope/server"]`},
	{"is a reserved character", nil, "write a word that begins with '`' in quotes"},
	{"directive value", nil, "write a word that begins with '%' in quotes"},
	{"mapping value is not allowed", nil, "write a value with a colon in it in quotes"},
	{"invalid header option", nil, "write the text below on lines of its own, indented"},
	{"value is not allowed in this context", closes, "this closes nothing: take it out"},
	{"value is not allowed in this context", isComma, "write { and } around what has commas between it"},
	{"value is not allowed in this context", isInLine, "write this on a line of its own"},
	{"value is not allowed in this context", nil, "this line is indented differently from the one above"},
}

const (
	tabs       = "indent with spaces: this line begins with a tab"
	references = `write a value with ${…} in it in quotes, as in "${NAME}"`
)

// plainMessage returns a message of the parser about a place in plain words, if it is known.
func plainMessage(message string, place *token.Token) string {
	for _, mistake := range mistakes {
		if strings.Contains(message, mistake.part) && (mistake.is == nil || mistake.is(place)) {
			return mistake.text
		}
	}
	return message
}

func closes(place *token.Token) bool  { return place.Value == "}" || place.Value == "]" }
func isComma(place *token.Token) bool { return place.Value == "," }

// isReference reports whether a place is the { of ${NAME}.
func isReference(place *token.Token) bool {
	return place.Value == "{" && place.Prev != nil && strings.HasSuffix(place.Prev.Value, "$")
}

func isInLine(place *token.Token) bool {
	return place.Prev != nil && place.Prev.Position.Line == place.Position.Line
}

var (
	// badEscape matches an escape that neither YAML nor JSON has, which the parser may take all the same.
	badEscape = regexp.MustCompile(
		`^"(?:[^\\"]|\\[^xuU])*\\(?:x[0-9A-Fa-f]?|u[0-9A-Fa-f]{0,3}|U[0-9A-Fa-f]{0,7})[^0-9A-Fa-f]`)
	// pathOfProgram matches the path of a program on Windows, written as it is, although all its escapes may exist.
	pathOfProgram = regexp.MustCompile(
		`^"[A-Za-z]:(?:\\[A-Za-z0-9_.() -]+)+\.(?:exe|cmd|bat|ps1|[cm]?[jt]s|py|jar|dll)"`)
)

// pathOfWindows returns the first text in double quotes that has a \ which was meant as it is; nil if there is none.
// The tokens have lost it, so it is looked for in data.
func pathOfWindows(tokens token.Tokens, data string) *token.Token {
	lines := strings.Split(data, "\n")
	var line []rune
	number := 0 // of the line; a file may be one long line
	for _, t := range tokens {
		if t.Type != token.DoubleQuoteType || t.Position.Line < 1 || t.Position.Line > len(lines) {
			continue
		}
		if t.Position.Line != number {
			number = t.Position.Line
			line = []rune(lines[number-1])
		}
		if text := quoteIn(line[min(len(line), max(0, t.Position.Column-1)):]); badEscape.MatchString(text) ||
			pathOfProgram.MatchString(text) {
			return t
		}
	}
	return nil
}

// quoteIn returns the text in double quotes with which a line begins, with them.
func quoteIn(line []rune) string {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return string(line[:i+1])
		}
	}
	return string(line)
}
