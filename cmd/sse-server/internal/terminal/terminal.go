// Package terminal shows on a terminal what goes on now, in a last line that changes, and tells those who read a pipe
// of it at times. Lines that others write go above that line.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// Line is the last line of a terminal, which changes while something runs. Without a terminal it shows nothing. It is
// safe for concurrent use. The zero Line has no terminal.
type Line struct {
	terminal io.Writer // nil: there is none, and no live line

	mu   sync.Mutex // guards what follows, and the terminal
	text string     // what is shown
}

// NewLine returns the live line of out, which shows nothing if out is no terminal.
func NewLine(out io.Writer) *Line {
	if f, ok := out.(*os.File); ok && Is(f) {
		return &Line{terminal: out}
	}
	return &Line{}
}

// Is reports whether a file is a terminal.
func Is(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }

// IsYes reports whether a person has answered a question with yes.
func IsYes(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// IsNo reports whether a person has answered a question with no, or with nothing.
func IsNo(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "" || answer == "n" || answer == "no"
}

// IsShown reports whether there is a terminal that shows the line.
func (l *Line) IsShown() bool { return l.terminal != nil }

// maxLive is how many characters the line has: it must not wrap on a terminal of 80 columns.
const maxLive = 78

// Show makes text the live line; an empty one removes it.
func (l *Line) Show(text string) {
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

// Over returns a writer to w, on the same terminal, above the live line.
func (l *Line) Over(w io.Writer) io.Writer {
	if l.terminal == nil {
		return w
	}
	return above{l, w}
}

type above struct {
	line *Line
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

// Silence is how long a check says nothing to a pipe.
const Silence = 3 * time.Second

// ShowWaiting shows what is waited for: all the time on a terminal, else once on stderr, after a silence. The caller
// must call end.
func (l *Line) ShowWaiting(what string, limit, silence time.Duration, stderr io.Writer) (end func()) {
	began := time.Now()
	text := func() string {
		return fmt.Sprintf("%s (%.0f s), for %v at most; Ctrl-C ends it", what, time.Since(began).Seconds(), limit)
	}
	told, over, ended := l.IsShown(), make(chan struct{}), make(chan struct{})
	go func() { // ends with end
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			l.Show(text())
			select {
			case <-tick.C:
			case <-over:
				l.Show("")
				return
			}
			if !told && time.Since(began) > silence {
				told = true
				fmt.Fprintln(stderr, "sse-server: "+text())
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}
