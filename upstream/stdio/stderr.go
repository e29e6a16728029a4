package stdio

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

const (
	// maxStderrLine is how much of a line is logged, in bytes. It is not more than a
	// jsonrpc.TooLongError holds.
	maxStderrLine = buffer.HeadBytes
	// maxExcerpt is how much of a line errors and debug logs show, in bytes.
	maxExcerpt = 500
)

// stderrLog reads a child's stderr to its end, logs it at a bounded rate, and remembers
// what may explain a failure. One goroutine owns it.
type stderrLog struct {
	log   *slog.Logger // limited
	last  string       // the last line that is not blank
	fault string       // the last line that names an error
}

// drain is the goroutine that owns stderr. It ends when all processes have closed their
// end, or drainTimeout after the child's exit.
func (c *child) drain() {
	defer close(c.drained)
	defer c.stderr.Close()
	c.notes = stderrLog{log: c.limited}
	c.notes.read(c.stderr)
}

func (s *stderrLog) read(r io.Reader) {
	split := buffer.NewSplitter(maxStderrLine, nil)
	buf := make([]byte, maxStderrLine)
	for {
		n, err := r.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			var (
				line []byte
				long error
			)
			line, rest, long = split.Next(rest)
			s.take(line, long)
		}
		if err != nil {
			s.take(split.Last())
			return
		}
	}
}

// take logs a line from a splitter.
func (s *stderrLog) take(line []byte, err error) {
	if long, ok := errors.AsType[*jsonrpc.TooLongError](err); ok {
		s.line(string(long.Head[:maxStderrLine]), true)
		return
	}
	s.line(string(line), false)
}

func (s *stderrLog) line(line string, cut bool) {
	line = strings.TrimRight(strings.ToValidUTF8(line, "\uFFFD"), " \t\r")
	if strings.TrimSpace(line) == "" {
		return
	}
	s.last = line
	if namesFault(line) {
		s.fault = line
	}
	if cut {
		s.log.Info("server stderr", "line", line, "truncated", true)
		return
	}
	s.log.Info("server stderr", "line", line)
}

// hint returns the line that most likely says why the child died. The last line often
// does not: Node writes the error, a stack, and then its version.
func (s *stderrLog) hint() string {
	line := s.fault
	if line == "" {
		line = s.last
	}
	return excerpt([]byte(strings.TrimSpace(line)), maxExcerpt)
}

func namesFault(line string) bool {
	line = strings.ToLower(line)
	for _, word := range []string{"error:", "panic:", "fatal:", "exception:"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
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
