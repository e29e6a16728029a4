package statuspage

import (
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// functions are those of the templates.
var functions = template.FuncMap{
	"clip": clip, "tail": tail, "ago": ago, "took": took, "count": count, "spark": newSpark, "failure": failureText,
	"reason": func(f *connstate.Failure) string { return clip(strings.ReplaceAll(f.Reason, "_", " "), 40) },
	"total":  func(states [4]int) int { return states[0] + states[1] + states[2] + states[3] },
}

// clip returns at most n characters of a text, and no characters that a page does not show
// or that change the direction of others.
func clip(s string, n int) string {
	var b strings.Builder
	for _, r := range s {
		if n--; n < 0 {
			return b.String() + "…"
		}
		if r == '\n' || r == '\t' {
			r = ' '
		}
		if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
	}
	return b.String()
}

// tail returns at most the last n characters of a text, where errors have their cause.
func tail(s string, n int) string {
	s = clip(s, len(s))
	if over := utf8.RuneCountInString(s) - n; over > 0 {
		s = "…" + string([]rune(s)[over:])
	}
	return s
}

// took returns a duration as people say it, with two digits or so.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// ago returns how long before now something was.
func ago(then, now time.Time) string {
	if d := max(0, now.Sub(then)); d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return took(now.Sub(then))
}

// count returns a number with its digits in groups of three.
func count(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// spark is a drawing of an hour: a bar for each minute.
type spark struct {
	What, Title string // the counts
	Path        string
	Sum         int
	Most        int // in a minute
}

// The size of a drawing: three units for a minute.
const (
	sparkWidth  = 3 * minutes
	sparkHeight = 32
)

func newSpark(hour Hour, what string) spark {
	s := spark{What: what, Title: strings.ToUpper(what[:1]) + what[1:]}
	var values [minutes]int
	for i, c := range hour {
		values[i] = map[string]int{"handshakes": c.Handshakes, "requests": c.Requests, "errors": c.Errors}[what]
		s.Sum += values[i]
		s.Most = max(s.Most, values[i])
	}
	var path strings.Builder
	for i, n := range values {
		if n > 0 { // and any bar can be seen
			fmt.Fprintf(&path, "M%d %dv-%d", 3*i+1, sparkHeight, 2+n*(sparkHeight-2)/s.Most)
		}
	}
	s.Path = path.String()
	return s
}
