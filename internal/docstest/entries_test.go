package docstest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// docs/clients.md shows what the program prints: of each client that has a section, its blocks are the file, or
// have the text, of the table.
func TestEntriesOfClientsAreTheTable(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs/clients.md"))
	ssetest.Must(t, err)
	open := clients.Server{Name: "demo", URL: "URL"}
	server := open
	server.Token = true
	compared := 0
	for _, c := range clients.WithEntry() {
		heading := "\n## " + c.Title + "\n"
		_, section, found := strings.Cut(string(data), heading)
		if !found {
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, block := range parsePage("docs/clients.md", section).blocks {
			compared++
			text := strings.Join(block.text, "\n")
			var got, want any
			switch block.language {
			case "json":
				ssetest.Must(t, json.Unmarshal([]byte(text), &got))
				ssetest.Must(t, json.Unmarshal(c.Entry.Document([]clients.Server{server}), &want))
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: docs/clients.md has\n%s\nand the table\n%s", c.Title, text, c.Entry.Document([]clients.Server{server}))
				}
			case "sh":
				if !strings.HasSuffix(text, c.Entry.Text([]clients.Server{open})+"\n"+c.Entry.Text([]clients.Server{server})) {
					t.Errorf("%s: docs/clients.md has\n%s\nand the table\n%s", c.Title, text, c.Entry.Text([]clients.Server{server}))
				}
			default:
				text = strings.TrimPrefix(text, "# Pattern: put your URL and TOKEN in.\n")
				if text != c.Entry.Text([]clients.Server{server}) {
					t.Errorf("%s: docs/clients.md has\n%s\nand the table\n%s", c.Title, text, c.Entry.Text([]clients.Server{server}))
				}
			}
		}
	}
	if compared < 20 {
		t.Errorf("compared %d blocks", compared)
	}
	reference, err := os.ReadFile(filepath.Join(root, "docs/reference/config.md"))
	ssetest.Must(t, err)
	_, named, _ := strings.Cut(string(reference), "CLIENT is ")
	named, _, _ = strings.Cut(named, "; NAME")
	named = strings.NewReplacer("\n", " ", "`", "", " or ", ", ").Replace(named)
	if want := strings.Join(clients.Names(clients.WithEntry()), ", "); named != want {
		t.Errorf("docs/reference/config.md says that CLIENT is %s, want %s", named, want)
	}
}
