package stdio

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxStderrLine is how much of a line is logged, in bytes.
	maxStderrLine = 4 << 10
	// maxExcerpt is how much of a line of stderr errors show, in bytes, and maxText how much
	// of a line of stdout errors and the log show.
	maxExcerpt = 500
	maxText    = 80
)

// stderrLog reads a child's stderr to its end, logs it at a bounded rate, and remembers
// what may explain a failure. One goroutine reads.
type stderrLog struct {
	log *slog.Logger // limited

	mu    sync.Mutex // guards what follows
	last  string     // the last line that is not blank
	fault string     // the last line that names an error
}

// drain is the goroutine that owns stderr. It ends when all processes have closed their
// end, or drainTimeout after the child's exit.
func (c *child) drain() {
	defer close(c.drained)
	defer c.stderr.Close()
	c.notes.log = c.limited
	c.notes.read(c.stderr)
}

func (s *stderrLog) read(r io.Reader) {
	in := bufio.NewReaderSize(r, maxStderrLine+len("\n"))
	for {
		line, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if long {
			line = line[:maxStderrLine]
		}
		s.line(string(line), long)
		if long {
			err = jsonrpc.SkipLine(in)
		}
		if err != nil {
			return
		}
	}
}

func (s *stderrLog) line(line string, cut bool) {
	line = strings.TrimRight(strings.ToValidUTF8(line, "\uFFFD"), " \t\r\n")
	if strings.TrimSpace(line) == "" {
		return
	}
	s.remember(line)
	if cut {
		s.log.Info("server stderr", "line", line, "truncated", true)
		return
	}
	s.log.Info("server stderr", "line", line)
}

func (s *stderrLog) remember(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = line
	if namesFault(line) {
		s.fault = line
	}
}

// hint returns the line that most likely says why the child died. The last line often
// does not: Node writes the error, a stack, and then its version.
func (s *stderrLog) hint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return excerpt([]byte(strings.TrimSpace(cmp.Or(s.fault, s.last))), maxExcerpt)
}

func namesFault(line string) bool {
	line = strings.ToLower(line)
	words := []string{"error:", "panic:", "fatal:", "exception:"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) })
}

// excerpt returns text, shortened to limit bytes of whole runes and an ellipsis.
func excerpt(text []byte, limit int) string {
	if len(text) <= limit {
		return string(text)
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return string(text[:limit]) + "…"
}
