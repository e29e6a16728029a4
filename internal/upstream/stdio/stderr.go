package stdio

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/wire"
)

const (
	// maxStderrLine is how much of a line is logged, in bytes.
	maxStderrLine = 4 << 10
	// maxExcerpt is how much of a line of stderr errors show, in bytes, maxWords how much of
	// several lines, and maxText how much of a line of stdout errors and the log show.
	maxExcerpt = 500
	maxWords   = 1000
	maxText    = 80
	// lastLines is how many lines of stderr errors show.
	lastLines = 5
)

// stderrLog reads a child's stderr to its end, logs it at a bounded rate, and remembers
// what may explain a failure. One goroutine reads.
type stderrLog struct {
	log *slog.Logger // limited

	mu    sync.Mutex // guards what follows
	last  []note     // the last lines that say something, at most lastLines
	fault note       // the last line that names an error
	frame note       // the last place in a traceback of Python; empty outside of one
}

// note is a line of stderr, and when it came.
type note struct {
	text string
	at   time.Time
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
			err = wire.SkipLine(in)
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

// steering are the sequences with which programs colour what they write, or move the cursor: CSI, OSC, and others.
var steering = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])`)

// place is where Python was, in a traceback.
var place = regexp.MustCompile(`^File ".*", line \d+`)

func (s *stderrLog) remember(line string) {
	line = steering.ReplaceAllString(line, "")
	line = line[strings.LastIndexByte(line, '\r')+1:] // a terminal shows no more of it
	text := excerpt([]byte(strings.TrimSpace(line)), maxExcerpt)
	isIndented := strings.HasPrefix(line, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case text == "":
	case isIndented && place.MatchString(text):
		s.frame = note{text, time.Now()}
	case isIndented && s.frame.text != "": // code, which says less than the error after it
	default:
		frame := s.frame
		s.frame = note{}
		if frame.text != "" {
			s.keepLocked(frame)
		}
		s.keepLocked(note{text, time.Now()})
	}
}

// keepLocked adds a line to the last ones, if it says something.
func (s *stderrLog) keepLocked(line note) {
	if slices.ContainsFunc(noise, func(pattern *regexp.Regexp) bool { return pattern.MatchString(line.text) }) {
		return
	}
	if s.last = append(s.last, line); len(s.last) > lastLines {
		s.last = slices.Delete(s.last, 0, 1)
	}
	if namesFault(line.text) {
		s.fault = line
	}
}

// noise are lines that do not say why a program has ended: of stacks, and of what programs add to each
// error.
var noise = []*regexp.Regexp{
	regexp.MustCompile(`^(at |node:internal/|throw |Node\.js v\d)`),
	regexp.MustCompile(`^[][{}()^~;, ]*$`),
	regexp.MustCompile(`^(code|errno|syscall|path|requireStack|spawnargs): `),
	regexp.MustCompile(`^Traceback \(most recent call last\):$|^File "[^"]*"$`),
	regexp.MustCompile(`^goroutine \d+ \[|^exit status \d+$`),
	regexp.MustCompile(`^npm (error|ERR!)( \d+| code \w+)?$|^npm (notice|warn|WARN)|_logs[/\\]`),
	regexp.MustCompile(`A complete log of this run|Note that you can also install from a$|` +
		`tarball, folder, http url, or git `),
	regexp.MustCompile(`^(Run|See) 'docker (run )?--help'`),
}

// hint returns those of the last lines that came at since or later, and the last one that names an error if
// it came before these: they are likely to say why the child died.
func (s *stderrLog) hint(since time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := s.last
	if s.frame.text != "" { // the traceback has not come to its end
		notes = append(slices.Clone(notes[max(0, len(notes)-lastLines+1):]), s.frame)
	}
	if s.fault.text != "" && !slices.Contains(notes, s.fault) {
		notes = slices.Concat([]note{s.fault}, notes)
	}
	var lines []string
	for _, note := range notes {
		if !note.at.Before(since) {
			lines = append(lines, note.text)
		}
	}
	return excerpt([]byte(strings.Join(lines, LineBreak)), maxWords)
}

// LineBreak stands between lines of stderr in the text of an error.
const LineBreak = " | "

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
