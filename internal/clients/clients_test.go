package clients_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestLosses(t *testing.T) {
	c := clients.Client{Patience: 2 * time.Second, Tools: 2, Descriptions: 10, NameLength: 8}
	tools := []clients.Tool{{"a", "12345"}, {"bcdefg", "ä2345"}}
	for what, test := range map[string]struct {
		client clients.Client
		server clients.Server
		want   []string // the beginnings
	}{
		"nothing":      {c, clients.Server{Name: "s", Boot: 2 * time.Second, Tools: tools}, nil},
		"no limits":    {clients.Client{}, clients.Server{Name: "server", Boot: time.Hour, Tools: tools}, nil},
		"a slow boot":  {c, clients.Server{Name: "s", Boot: 2500 * time.Millisecond}, []string{"it waits 2s for tools, and the server took 2.5s"}},
		"many tools":   {c, clients.Server{Name: "s", Tools: append(tools, clients.Tool{Name: "c"})}, []string{"it takes 2 tools over all servers, and this one has 3"}},
		"descriptions": {c, clients.Server{Name: "s", Tools: []clients.Tool{{"a", "12345678901"}}}, []string{"it takes 10 characters of descriptions over all servers, and this one has 11"}},
		"names":        {c, clients.Server{Name: "se", Tools: tools}, []string{`it takes names of 8 characters with "se_" in front, and drops the tools bcdefg`}},
	} {
		got := test.client.Losses(test.server)
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s: got %q, want %q", what, got, test.want)
		}
	}
	c.Cuts = true
	if got := c.Losses(clients.Server{Name: "se", Tools: tools}); !strings.Contains(fmt.Sprint(got), "cuts the names") {
		t.Errorf("a client that cuts names: got %q", got)
	}
}

// The table is sorted, so that a name is found, and the page for people has the same facts: a row for each
// client, with its figures.
func TestClientsAreDocumented(t *testing.T) {
	names := clients.Names()
	if !slices.IsSorted(names) {
		t.Errorf("%q are not sorted", names)
	}
	page, err := os.ReadFile("../../docs/clients.md")
	ssetest.Must(t, err)
	for _, c := range clients.All {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(c.Title) + `[ ,].*$`).FindString(string(page))
		if row == "" {
			t.Errorf("docs/clients.md has no row of %s", c.Title)
			continue
		}
		for what, figure := range map[string]string{
			"patience": seconds(c.Patience), "call": seconds(c.Call), "tools": number(c.Tools),
			"descriptions": number(c.Descriptions), "names": number(c.NameLength), "quiet": c.Quiet,
		} {
			if !strings.Contains(row, figure) {
				t.Errorf("docs/clients.md: the row of %s lacks %q, its %s", c.Title, figure, what)
			}
		}
	}
}

func seconds(d time.Duration) string {
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
	return fmt.Sprint(n)
}

func TestLimits(t *testing.T) {
	least := clients.Limits()
	ssetest.Want(t, "limits", []int{least.Tools, least.Descriptions, least.NameLength}, []int{40, 8000, 60})
	ssetest.Want(t, "explained", clients.Explained(), "Trae: 40 tools and 8000 characters of descriptions over all servers; "+
		"names, with the server's in front: Cline, Codex, Roo 64 characters; Cursor, Trae 60 characters; Gemini CLI 63 characters")
	ssetest.Want(t, "quiet", []bool{clients.IsQuiet("Java-http-client/17"), clients.IsQuiet("curl/8"), clients.IsQuiet("")}, []bool{true, false, false})
	if _, ok := clients.Named("trae"); !ok {
		t.Error("trae is not known")
	}
}
