package stdio

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/scaletest"
)

// outputs are what a child may print, of about n bytes.
func outputs() map[string]func(n int) string {
	lines := func(line string) func(n int) string {
		return func(n int) string { return strings.Repeat(line+"\n", n/(len(line)+1)) }
	}
	return map[string]func(n int) string{
		"messages":      lines(`{"jsonrpc":"2.0","method":"m"}`),
		"short lines":   lines("x"),
		"empty lines":   lines(""),
		"blank lines":   lines(strings.Repeat(" ", 100)),
		"bytes":         lines("\xff\xfe\x00"),
		"errors":        lines("Error: x"),
		"one line":      func(n int) string { return strings.Repeat("x", n) },
		"one message":   func(n int) string { return `{"a":"` + strings.Repeat("x", n) + "\"}\n" },
		"wide runes":    func(n int) string { return strings.Repeat("\U0001F600", n/4) },
		"half runes":    func(n int) string { return strings.Repeat("\xf0\x9f\x98", n/3) },
		"over the line": lines(strings.Repeat("x", 70_000)),
	}
}

// Whatever a child prints, the time for it grows with its length alone.
func TestOutputTakesTimeInProportion(t *testing.T) {
	for name, output := range outputs() {
		for size, step := range map[string]int{"in small reads": 100, "in large reads": 1 << 30} {
			t.Run("stderr/"+name+"/"+size, func(t *testing.T) {
				scaletest.Linear(t, 10_000, func(n int) func() {
					text := []byte(output(n))
					return func() { newStderrLog(io.Discard).read(&chunks{text, step}) }
				})
			})
		}
	}
}

// The same for stdout, with a file in the place of the pipe.
func TestMessagesTakeTimeInProportion(t *testing.T) {
	for name, output := range outputs() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			scaletest.Linear(t, 50_000, func(n int) func() {
				file := fmt.Sprint(dir, "/", n)
				if err := os.WriteFile(file, []byte(output(n)), 0o600); err != nil {
					t.Fatal(err)
				}
				return func() { readAll(t, file) }
			})
		})
	}
}

// readAll reads a file as the stdout of a child.
func readAll(t *testing.T, file string) {
	stdout, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	c := newChild(Command{MaxLineBytes: 64 << 10, Logger: slog.New(slog.DiscardHandler)})
	c.stdout, c.noise = stdout, c.log
	for c.final == nil {
		_, _ = c.Recv() // an error that is not final is about one line
	}
}
