package extract

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// readRTF reads the text of an RTF file, without its markup. Paragraphs with an outline
// level are headings.
func readRTF(o order, data []byte, text *plain.Builder) (title string, err error) {
	if !bytes.HasPrefix(data, []byte(`{\rtf`)) {
		return "", errors.New("it does not begin as RTF")
	}
	r := &rtf{in: data, text: text, encoding: charmap.Windows1252, headings: make(map[int]bool), paragraph: -1,
		group: rtfGroup{fallback: 1}}
	for len(r.in) > 0 {
		if text.Size() > o.MaxText {
			return "", tooMuchText(o.MaxText)
		}
		r.next()
	}
	r.flush()
	return r.title.String(), nil
}

// rtf is what is known between two tokens.
type rtf struct {
	in       []byte // what is left
	text     *plain.Builder
	encoding encoding.Encoding
	bytes    []byte   // of characters in that encoding
	units    []uint16 // of characters by number
	skip     int      // how many of the next characters repeat one that came by number
	title    plain.Builder

	group     rtfGroup
	groups    []rtfGroup   // around it
	paragraph int          // where the heading begins, -1 outside
	style     int          // the last one that was named
	styleName string       // in the list of styles, so far
	headings  map[int]bool // the styles of headings
	row       bool         // of a table, whose cells stand on one line
}

// rtfGroup is what the end of a group restores.
type rtfGroup struct {
	hidden   bool // no text of the document
	styles   bool // the list of styles
	title    bool // the title of the document
	fallback int  // how many characters repeat each that comes by number
}

// rtfHidden are the groups that hold no text of the document.
var rtfHidden = map[string]bool{
	"*": true, "fonttbl": true, "colortbl": true, "stylesheet": true, "info": true, "pict": true,
	"objdata": true, "nonshppict": true, "header": true, "headerl": true, "headerr": true, "headerf": true,
	"footer": true, "footerl": true, "footerr": true, "footerf": true,
}

// next takes one token.
func (r *rtf) next() {
	c := r.in[0]
	switch c {
	case '{':
		r.flush()
		r.groups = append(r.groups, r.group)
	case '}':
		r.flush()
		if n := len(r.groups); n > 0 {
			r.group, r.groups = r.groups[n-1], r.groups[:n-1]
		}
	case '\\':
		r.control()
		return
	case '\r', '\n':
	default:
		r.char(c)
	}
	r.in = r.in[1:]
}

// char takes a character in the encoding of the document.
func (r *rtf) char(c byte) {
	if r.skip > 0 {
		r.skip--
		return
	}
	if len(r.units) > 0 {
		r.flush()
	}
	r.bytes = append(r.bytes, c)
}

// flush writes the characters that came together.
func (r *rtf) flush() {
	s := string(utf16.Decode(r.units))
	if decoded, err := r.encoding.NewDecoder().Bytes(r.bytes); err == nil {
		s += string(decoded)
	}
	r.bytes, r.units = r.bytes[:0], r.units[:0]
	switch {
	case r.group.styles:
		r.styleName += s // it ends with a semicolon
		if name, _, ended := strings.Cut(r.styleName, ";"); ended {
			r.headings[r.style] = strings.HasPrefix(strings.ToLower(strings.TrimSpace(name)), "heading ")
			r.styleName = ""
		}
	case r.group.title:
		r.title.Words(s)
	case !r.group.hidden:
		r.text.Words(s)
	}
}

// control takes a control word or symbol.
func (r *rtf) control() {
	word, number, n := rtfWord(r.in)
	r.in = r.in[n:]
	switch word {
	case "'":
		if c, err := strconv.ParseUint(string(r.in[:min(2, len(r.in))]), 16, 8); err == nil {
			r.in = r.in[2:]
			r.char(byte(c))
		}
	case `\`, "{", "}":
		r.char(word[0])
	case "u":
		if len(r.bytes) > 0 {
			r.flush()
		}
		r.units = append(r.units, uint16(number))
		r.skip = r.group.fallback
	case "uc":
		r.group.fallback = max(0, min(number, 64))
	case "bin":
		r.in = r.in[max(0, min(number, len(r.in))):]
	case "ansicpg":
		r.encoding = rtfEncoding(number)
	default:
		r.flush()
		r.command(word, number)
	}
}

// command takes a word that ends a run of characters.
func (r *rtf) command(word string, number int) {
	switch word {
	case "title":
		r.group.title = true
	case "stylesheet":
		r.group.styles = true
	case "footnote": // it may be one of the groups that an old reader should hide
		r.group.hidden = false
	case "s":
		r.style = number
	}
	r.group.hidden = r.group.hidden || rtfHidden[word]
	if !r.group.hidden {
		r.format(word, number)
	}
}

// format takes a word that acts on the text.
func (r *rtf) format(word string, number int) {
	switch word {
	case "outlinelevel", "s":
		if word == "s" && r.headings[number] || word != "s" && number < 9 {
			r.paragraph = r.text.Len()
		}
	case "pard":
		r.paragraph = -1
	case "trowd", "row":
		r.row = word == "trowd"
		r.text.NewLine()
	case "par", "line", "\n", "\r":
		r.endLine()
	case "sect", "page":
		r.text.BlankLine()
	case "cell", "tab":
		r.text.Tab()
	case "_":
		r.text.Raw("-")
	case "~":
		r.text.Words(" ")
	default:
		r.text.Words(rtfSigns[word])
	}
}

// endLine ends a paragraph, and records a heading. The level stays for the next one.
func (r *rtf) endLine() {
	switch {
	case r.row:
		r.text.Words(" ")
	case r.paragraph >= 0:
		r.text.Heading(r.paragraph)
		r.text.NewLine()
		r.paragraph = r.text.Len()
	default:
		r.text.NewLine()
	}
}

var rtfSigns = map[string]string{
	"emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
}

// rtfWord returns the control word or symbol that in begins with, its number, and its
// length. A word may end with a space, which is a part of it.
func rtfWord(in []byte) (word string, number, length int) {
	end := 1
	for end < len(in) && (in[end]|0x20) >= 'a' && (in[end]|0x20) <= 'z' {
		end++
	}
	if end == 1 {
		end = min(2, len(in))
		return string(in[1:end]), 0, end
	}
	word = string(in[1:end])
	digits := end
	for end < len(in) && (in[end] >= '0' && in[end] <= '9' || in[end] == '-' && end == digits) {
		end++
	}
	number, _ = strconv.Atoi(string(in[digits:end])) // 0 without one
	if end < len(in) && in[end] == ' ' {
		end++
	}
	return word, number, end
}

// rtfEncoding returns the encoding of a code page of Windows.
func rtfEncoding(page int) encoding.Encoding {
	name := fmt.Sprintf("windows-%d", page)
	if multibyte := map[int]string{932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5"}[page]; multibyte != "" {
		name = multibyte
	}
	if found, _ := charset.Lookup(name); found != nil {
		return found
	}
	return charmap.Windows1252
}
