package docstest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// limits are the ways in which docs/reference/clients.md tells the limits that the program knows too.
var limits = []struct {
	what    string
	pattern *regexp.Regexp // its group is the figure
	figure  func(clients.Client) string
}{
	{"patience", regexp.MustCompile(`waits (\d+ m?s) for tools|(\d+ m?s) for the start`), func(c clients.Client) string { return duration(c.Patience) }},
	{"call", regexp.MustCompile(`(\d+ (?:s|min)) for a call`), func(c clients.Client) string { return duration(c.Call) }},
	{"tools", regexp.MustCompile(`(\d+) tools`), func(c clients.Client) string { return number(c.Tools) }},
	{"descriptions", regexp.MustCompile(`([\d,]+) characters of descriptions`), func(c clients.Client) string { return number(c.Descriptions) }},
	{"description", regexp.MustCompile(`a description at ([\d,]+) characters`), func(c clients.Client) string { return number(c.Description) }},
	{"names", regexp.MustCompile(`names (?:of|at) (\d+)`), func(c clients.Client) string { return number(c.NameLength) }},
	{"front of names", regexp.MustCompile("`(\\S*SERVER\\S*?)TOOL\\b"), func(c clients.Client) string { return strings.Replace(c.Front, "%s", "SERVER", 1) }},
	{"result", regexp.MustCompile(`a result over ([\d,]+ (?:tokens|characters))`), func(c clients.Client) string {
		return strings.TrimSpace(number(c.Result) + " " + c.ResultUnit)
	}},
	{"keywords", regexp.MustCompile("`([a-zA-Z`, ]+)` at the top of a schema"), func(c clients.Client) string { return strings.Join(c.Keywords, "`, `") }},
}

// The limits on the page for people are those that the program knows, both ways: a row for each client
// that it knows, with the same figures, and none with a figure that it does not know.
func TestClientsPageIsTheTable(t *testing.T) {
	known := map[string]bool{}
	for _, row := range rows(t, "docs/reference/clients.md", "## One by one")[1:] {
		c, ok := clientOf(row[0])
		known[c.Name] = ok
		for _, limit := range limits {
			var got []string
			for _, m := range limit.pattern.FindAllStringSubmatch(strings.Join(row[3:], "|"), -1) {
				got = append(got, strings.Join(m[1:], ""))
			}
			if want := limit.figure(c); strings.Join(got, " and ") != want {
				t.Errorf("docs/reference/clients.md has %q as %s of %s, and the program %q", got, limit.what, row[0], want)
			}
		}
		if c.Quiet && !strings.Contains(strings.Join(row, "|"), c.Calls[0]) {
			t.Errorf("docs/reference/clients.md does not say by which name %s is recognised: %s", c.Title, c.Calls[0])
		}
	}
	for _, c := range clients.All {
		if !known[c.Name] {
			t.Errorf("docs/reference/clients.md has no row of %s", c.Title)
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "docs/reference/config.md"))
	ssetest.Must(t, err)
	_, section, _ := strings.Cut(string(data), "### What clients will lose")
	section, _, _ = strings.Cut(section, "or a name by which")
	named := clients.Names(clients.WithEntry()) // which connect takes too
	for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(section, -1) {
		named = append(named, m[1])
	}
	slices.Sort(named)
	ssetest.Want(t, "the names in docs/reference/config.md", named, clients.Names(clients.All))
}

// clientOf returns the client whose row begins with a cell.
func clientOf(cell string) (clients.Client, bool) {
	i := slices.IndexFunc(clients.All, func(c clients.Client) bool {
		rest, ok := strings.CutPrefix(cell, c.Title)
		return ok && (rest == "" || strings.ContainsAny(rest[:1], " ,"))
	})
	if i < 0 {
		return clients.Client{}, false
	}
	return clients.All[i], true
}

func duration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d > 2*time.Minute:
		return fmt.Sprintf("%g min", d.Minutes())
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return strconv.Itoa(n)
}
