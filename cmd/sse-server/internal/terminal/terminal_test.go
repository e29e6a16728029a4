package terminal

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// On a terminal the line is at the bottom, and what others write goes above it.
func TestLiveLine(t *testing.T) {
	var screen bytes.Buffer
	live := &Line{terminal: &screen}
	log := live.Over(&screen)
	live.Show("a starting (0 s)")
	live.Show("a starting (0 s)")
	_, _ = io.WriteString(log, "a line\n")
	live.Show(strings.Repeat("ä", 100))
	live.Show("")
	_, _ = io.WriteString(log, "the last\n")
	const clear = "\r\x1b[K"
	want := clear + "a starting (0 s)" + clear + "a line\na starting (0 s)" + clear + strings.Repeat("ä", 77) + "…" + clear + "the last\n"
	if screen.String() != want {
		t.Errorf("got %q, want %q", screen.String(), want)
	}
	if w := new(Line).Over(&screen); w != io.Writer(&screen) {
		t.Error("without a terminal, writers are others")
	}
}

// An answer that is neither yes nor no is neither.
func TestAnswers(t *testing.T) {
	for answer, want := range map[string][2]bool{ // yes, no
		"y": {true, false}, " YES ": {true, false}, "": {false, true}, "n": {false, true}, "No": {false, true}, "ok?": {false, false},
	} {
		if got := [2]bool{IsYes(answer), IsNo(answer)}; got != want {
			t.Errorf("%q: got %v, want %v", answer, got, want)
		}
	}
}
