package pdf

import (
	"math"

	"github.com/ledongthuc/pdf"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

const maxFormDepth = 8

// page follows the text of a page: where it stands tells words, lines and paragraphs
// apart, because a PDF need not have spaces.
type page struct {
	reader *reader
	line   int // offset of the open line, -1 without one

	state         // of graphics
	saved []state // by the operator q

	shown bool    // something stands on the page
	x, y  float64 // where the last text ended
	size  float64 // of the last text
}

// state is what the operators q and Q save and restore.
type state struct {
	ctm, text, lineStart matrix
	font                 *font
	fontSize             float64
	charSpace, wordSpace float64
	scale, leading       float64
}

// interpret reads one content stream. What it has read counts, also if it then meets
// something broken.
func (p *page) interpret(stream, resources pdf.Value, depth int) {
	defer func() {
		if r := recover(); r != nil {
			return // the text so far is that of the page
		}
	}()
	if depth == 0 {
		p.state = state{ctm: identity, text: identity, lineStart: identity, scale: 1}
	}
	if stream.Kind() != pdf.Stream && stream.Kind() != pdf.Array {
		return
	}
	pdf.Interpret(stream, func(stack *pdf.Stack, op string) {
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		if op == "Do" && len(args) == 1 {
			p.form(resources.Key("XObject").Key(args[0].Name()), resources, depth)
			return
		}
		if op == "Tf" && len(args) == 2 {
			p.font = p.reader.font(resources.Key("Font").Key(args[0].Name()))
			p.fontSize = args[1].Float64()
			return
		}
		if p.reader.text.Size() <= p.reader.maxText {
			p.operate(op, args)
		}
	})
}

// form shows a content stream inside another one.
func (p *page) form(x, resources pdf.Value, depth int) {
	if x.Key("Subtype").Name() != "Form" || depth >= maxFormDepth {
		return
	}
	if own := x.Key("Resources"); !own.IsNull() {
		resources = own
	}
	before := p.state
	if m := x.Key("Matrix"); m.Len() == 6 {
		p.ctm = matrixOf(func(i int) float64 { return m.Index(i).Float64() }).times(p.ctm)
	}
	p.interpret(x, resources, depth+1)
	p.state = before
}

// operate follows one operator, with the arguments that the specification names for it.
func (p *page) operate(op string, args []pdf.Value) {
	number := func(i int) float64 {
		if i >= len(args) {
			return 0
		}
		return args[i].Float64()
	}
	switch op {
	case "q":
		if len(p.saved) < 1000 {
			p.saved = append(p.saved, p.state)
		}
	case "Q":
		if n := len(p.saved); n > 0 {
			p.state, p.saved = p.saved[n-1], p.saved[:n-1]
		}
	case "cm":
		p.ctm = matrixOf(number).times(p.ctm)
	case "BT":
		p.text, p.lineStart = identity, identity
	case "Tm":
		p.text = matrixOf(number)
		p.lineStart = p.text
	case "TD":
		p.leading = -number(1)
		p.moveLine(number(0), number(1))
	case "Td":
		p.moveLine(number(0), number(1))
	case "T*":
		p.moveLine(0, -p.leading)
	case "TL":
		p.leading = number(0)
	case "Tc":
		p.charSpace = number(0)
	case "Tw":
		p.wordSpace = number(0)
	case "Tz":
		p.scale = number(0) / 100
	case "Tj", "TJ", "'", "\"":
		p.showOperator(op, args)
	}
}

func (p *page) showOperator(op string, args []pdf.Value) {
	if len(args) == 0 {
		return
	}
	if op == "'" || op == "\"" {
		p.moveLine(0, -p.leading)
	}
	last := args[len(args)-1]
	if op != "TJ" {
		p.show(last.RawString())
		return
	}
	for i := range last.Len() {
		if x := last.Index(i); x.Kind() == pdf.String {
			p.show(x.RawString())
		} else {
			p.advance(-x.Float64() / 1000 * p.fontSize * p.scale)
		}
	}
}

func (p *page) moveLine(x, y float64) {
	p.lineStart = translation(x, y).times(p.lineStart)
	p.text = p.lineStart
}

func (p *page) advance(x float64) { p.text = translation(x, 0).times(p.text) }

// show shows one string, and puts before it what its place asks for.
func (p *page) show(raw string) {
	if p.font == nil {
		return
	}
	at := p.text.times(p.ctm)
	size := math.Abs(p.fontSize) * math.Hypot(at[2], at[3])
	p.separate(at[4], at[5], size)
	for code := range p.font.codes(raw) {
		glyph := p.font.glyph(code)
		p.reader.text.Words(glyph.text)
		width := glyph.width/1000*p.fontSize + p.charSpace
		if code == " " {
			width += p.wordSpace
		}
		p.advance(width * p.scale)
	}
	if p.line < 0 {
		p.line = p.reader.text.Len()
	}
	end := p.text.times(p.ctm)
	p.x, p.y, p.size, p.shown = end[4], end[5], size, true
}

// separate begins a paragraph, a line or a word, if text at (x, y) does after the last
// one. The thresholds are parts of the size of the font.
func (p *page) separate(x, y, size float64) {
	const (
		line      = 0.6
		paragraph = 2.0
		word      = 0.18
		back      = 0.8
	)
	if !p.shown {
		p.startLine()
		return
	}
	size = max(size, p.size)
	dx, dy := x-p.x, math.Abs(y-p.y)
	switch {
	case dy > paragraph*size:
		p.endLine()
		p.reader.text.BlankLine()
		p.startLine()
	case dy > line*size:
		p.endLine()
		p.reader.text.NewLine()
		p.startLine()
	case dx > word*size, dx < -back*size:
		p.reader.text.Space()
	}
}

func (p *page) startLine() { p.line = p.reader.text.Len() }

// endLine looks whether the line is a heading.
func (p *page) endLine() {
	if p.line < 0 {
		return
	}
	if heading := plain.OneLine(p.reader.text.From(p.line)); p.reader.headings[heading] {
		p.reader.heading(p.line, heading)
	}
	p.line = -1
}

// matrix is the first two columns of a transformation: a b c d e f of the
// specification.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

func matrixOf(number func(i int) float64) matrix {
	var m matrix
	for i := range m {
		m[i] = number(i)
	}
	return m
}

func translation(x, y float64) matrix { return matrix{1, 0, 0, 1, x, y} }

// times returns the transformation that applies m and then n.
func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}
