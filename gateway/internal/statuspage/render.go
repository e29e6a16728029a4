package statuspage

import (
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// functions are those of the templates.
var functions = template.FuncMap{"printable": printable, "took": took, "spark": newSpark, "mebibytes": mebibytes,
	"kinds": func() any { return kinds }}

// printable returns at most n characters of a text. It replaces characters that a page does not show, or that
// change the direction of others.
func printable(s string, n int) string {
	if utf8.RuneCountInString(s) > n {
		s = string([]rune(s)[:n]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// took returns a duration as people say it.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// mebibytes returns a number of bytes as people say it.
func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<19)>>20) }

// kinds are the names of what a metrics.Hour counts.
var kinds = []string{metrics.Handshakes: "handshakes", metrics.Requests: "requests", metrics.Errors: "errors"}

// spark draws a kind of counts: a bar for each minute, in a box of 180 by 32.
type spark struct {
	Kind, Path string
	Sum, Most  int // of an hour, of a minute
}

func newSpark(hour metrics.Hour, kind int) spark {
	s := spark{Kind: kinds[kind]}
	for _, counts := range hour {
		s.Sum += counts[kind]
		s.Most = max(s.Most, counts[kind])
	}
	for i, counts := range hour {
		if n := counts[kind]; n > 0 { // and any bar can be seen
			s.Path += fmt.Sprintf("M%d 32v-%d", 3*i+1, 2+n*30/s.Most)
		}
	}
	return s
}
