package pdf

import (
	"bytes"
	"encoding/hex"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"
)

const (
	maxCodes = 1 << 17 // of one font
	maxCMap  = 4 << 20 // bytes
)

// font tells what the codes of a font mean and how wide they are.
type font struct {
	encoding  pdf.TextEncoding // of codes that are not in toUnicode, nil without one
	composite bool             // codes have two bytes
	toUnicode map[string]string
	widths    map[int]float64
	width     float64 // of codes that are not in widths
	glyphs    map[string]glyph
}

type glyph struct {
	text  string
	width float64 // in thousandths of the font size
}

// font returns the font that a dictionary describes.
func (r *reader) font(v pdf.Value) *font {
	if v.Kind() != pdf.Dict {
		return nil
	}
	key := v.String()
	if f := r.fonts[key]; f != nil {
		return f
	}
	f := newFont(v)
	r.fonts[key] = f
	return f
}

func newFont(v pdf.Value) *font {
	f := &font{
		composite: v.Key("Subtype").Name() == "Type0",
		toUnicode: make(map[string]string),
		widths:    make(map[int]float64),
		glyphs:    make(map[string]glyph),
	}
	if f.composite {
		f.readCompositeWidths(v.Key("DescendantFonts").Index(0))
	} else {
		f.readWidths(v)
	}
	if cmap := v.Key("ToUnicode"); cmap.Kind() == pdf.Stream {
		f.readToUnicode(cmap)
	}
	switch {
	case !f.composite:
		f.encoding = (&pdf.Font{V: v}).Encoder()
	case strings.HasPrefix(v.Key("Encoding").Name(), "Uni"): // UniGB-UCS2-H and the like
		f.encoding = utf16Codes{}
	}
	return f
}

func (f *font) readWidths(v pdf.Value) {
	f.width = v.Key("FontDescriptor").Key("MissingWidth").Float64()
	widths := v.Key("Widths")
	if widths.Len() == 0 && f.width == 0 {
		f.width = 500 // one of the standard fonts, whose widths the file need not have
	}
	first := int(v.Key("FirstChar").Int64())
	for i := range min(widths.Len(), maxCodes) {
		f.widths[first+i] = widths.Index(i).Float64()
	}
}

// readCompositeWidths reads W, a list of "first [width…]" and "first last width".
func (f *font) readCompositeWidths(v pdf.Value) {
	f.width = 1000
	if dw := v.Key("DW"); !dw.IsNull() {
		f.width = dw.Float64()
	}
	w := v.Key("W")
	for i := 0; i+1 < w.Len() && len(f.widths) < maxCodes; {
		first, second := int(w.Index(i).Int64()), w.Index(i+1)
		if second.Kind() == pdf.Array {
			for j := range second.Len() {
				f.widths[first+j] = second.Index(j).Float64()
			}
			i += 2
			continue
		}
		for code := first; code <= min(int(second.Int64()), first+0xffff); code++ {
			f.widths[code] = w.Index(i + 2).Float64()
		}
		i += 3
	}
}

// readToUnicode reads the character map of a font, if it has one that can be read.
func (f *font) readToUnicode(cmap pdf.Value) {
	r := cmap.Reader()
	defer r.Close()
	program, err := io.ReadAll(io.LimitReader(r, maxCMap))
	if err == nil {
		f.readCharacterMap(program)
	}
}

// readCharacterMap reads the text of each code. A character map is a PostScript program,
// but only its lists matter here: lists of hexadecimal strings between two operators.
func (f *font) readCharacterMap(program []byte) {
	var list cmapList
	for t := range cmapTokens(program) {
		switch {
		case t == "beginbfchar", t == "beginbfrange":
			list = cmapList{}
		case t == "endbfchar":
			for pair := range slices.Chunk(list.items, 2) {
				f.mapChar(pair)
			}
		case t == "endbfrange":
			for triple := range slices.Chunk(list.items, 3) {
				f.mapRange(triple)
			}
		default:
			list.add(t)
		}
	}
}

// cmapTokens returns hexadecimal strings, the ends of arrays, and the operators around
// lists.
func cmapTokens(program []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(program) > 0 {
			n := tokenLength(program)
			if n > 0 && !yield(string(program[:n])) {
				return
			}
			program = program[max(n, 1):]
		}
	}
}

// tokenLength returns the length of the token that program begins with, 0 if it begins
// with something else.
func tokenLength(program []byte) int {
	switch program[0] {
	case '[', ']':
		return 1
	case '<':
		rest := bytes.TrimLeft(program[1:], "0123456789ABCDEFabcdef \t\n\f\r")
		if len(rest) > 0 && rest[0] == '>' {
			return len(program) - len(rest) + 1
		}
	case 'b', 'e':
		for _, operator := range []string{"beginbfchar", "beginbfrange", "endbfchar", "endbfrange"} {
			if bytes.HasPrefix(program, []byte(operator)) {
				return len(operator)
			}
		}
	}
	return 0
}

// cmapList has the items of a list: strings, each in a slice of its own, and arrays of
// strings.
type cmapList struct {
	items  [][]string
	nested bool // in an array, the last item
}

func (l *cmapList) add(token string) {
	switch {
	case token == "[":
		l.items = append(l.items, []string{})
		l.nested = true
	case token == "]":
		l.nested = false
	case l.nested:
		last := &l.items[len(l.items)-1]
		*last = append(*last, unhex(token))
	default:
		l.items = append(l.items, []string{unhex(token)})
	}
}

// unhex returns the bytes of a hexadecimal string. A missing last digit is 0.
func unhex(token string) string {
	digits := strings.Join(strings.Fields(strings.Trim(token, "<>")), "")
	if len(digits)%2 == 1 {
		digits += "0"
	}
	b, _ := hex.DecodeString(digits) // the token has hexadecimal digits only
	return string(b)
}

func (f *font) mapChar(pair [][]string) {
	if len(pair) == 2 && len(pair[0]) == 1 && len(pair[1]) == 1 {
		f.mapCode(pair[0][0], utf16Text(pair[1][0]))
	}
}

// mapRange maps the codes from low to high to texts that differ in their last character,
// or to those of an array.
func (f *font) mapRange(triple [][]string) {
	if len(triple) != 3 || len(triple[0]) != 1 || len(triple[1]) != 1 || len(triple[2]) == 0 {
		return
	}
	low, high, to := triple[0][0], triple[1][0], triple[2]
	if len(low) == 0 || len(low) > 4 || len(high) != len(low) {
		return
	}
	first, last := bigEndian(low), min(bigEndian(high), bigEndian(low)+0xffff)
	text := []rune(utf16Text(to[0]))
	for code := first; code <= last && len(f.toUnicode) < maxCodes; code++ {
		i := code - first
		switch {
		case len(to) > 1 && i < len(to):
			f.mapCode(codeOf(code, len(low)), utf16Text(to[i]))
		case len(to) == 1 && len(text) > 0:
			f.mapCode(codeOf(code, len(low)), string(text[:len(text)-1])+string(text[len(text)-1]+rune(i)))
		}
	}
}

func (f *font) mapCode(code, text string) {
	if len(f.toUnicode) < maxCodes {
		f.toUnicode[code] = text
	}
}

func bigEndian(s string) int {
	n := 0
	for i := range min(len(s), 4) {
		n = n<<8 | int(s[i])
	}
	return n
}

func codeOf(code, length int) string {
	b := make([]byte, length)
	for i := length - 1; i >= 0; i-- {
		b[i] = byte(code)
		code >>= 8
	}
	return string(b)
}

func utf16Text(s string) string {
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}

// utf16Codes is the encoding of fonts whose codes are UTF-16.
type utf16Codes struct{}

func (utf16Codes) Decode(code string) string { return utf16Text(code) }

// codes splits a string into the codes of its characters.
func (f *font) codes(raw string) iter.Seq[string] {
	size := 1
	if f.composite {
		size = 2
	}
	return func(yield func(string) bool) {
		for i := 0; i+size <= len(raw); i += size {
			if !yield(raw[i : i+size]) {
				return
			}
		}
	}
}

func (f *font) glyph(code string) glyph {
	if g, ok := f.glyphs[code]; ok {
		return g
	}
	text, ok := f.toUnicode[code]
	if !ok && f.encoding != nil {
		text = f.encoding.Decode(code)
	}
	width, ok := f.widths[bigEndian(code)]
	if !ok {
		width = f.width
	}
	g := glyph{text: textOf(text), width: width}
	f.glyphs[code] = g
	return g
}
