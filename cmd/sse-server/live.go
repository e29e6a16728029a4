package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// liveLine is the last line of a terminal, which changes while something runs. What others write goes
// above it. It is safe for concurrent use.
type liveLine struct {
	terminal io.Writer // nil: there is none, and no live line

	mu   sync.Mutex // guards what follows, and the terminal
	text string     // what is shown
}

// newLiveLine returns the live line of out, which shows nothing if out is no terminal.
func newLiveLine(out io.Writer) *liveLine {
	if f, ok := out.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return &liveLine{terminal: out}
	}
	return &liveLine{}
}

// maxLive is how many characters the line has: it must not wrap on a terminal of 80 columns.
const maxLive = 78

// show makes text the live line; an empty one removes it.
func (l *liveLine) show(text string) {
	if l.terminal == nil {
		return
	}
	if utf8.RuneCountInString(text) > maxLive {
		text = string([]rune(text)[:maxLive-1]) + "…"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if text != l.text {
		l.text = text
		fmt.Fprintf(l.terminal, "\r\x1b[K%s", text)
	}
}

// over returns a writer to w, on the same terminal, above the live line.
func (l *liveLine) over(w io.Writer) io.Writer {
	if l.terminal == nil {
		return w
	}
	return above{l, w}
}

type above struct {
	line *liveLine
	to   io.Writer
}

// Write writes whole lines.
func (a above) Write(p []byte) (int, error) {
	a.line.mu.Lock()
	defer a.line.mu.Unlock()
	if a.line.text == "" {
		return a.to.Write(p)
	}
	fmt.Fprint(a.line.terminal, "\r\x1b[K")
	n, err := a.to.Write(p)
	fmt.Fprint(a.line.terminal, a.line.text)
	return n, err
}
