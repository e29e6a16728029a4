package docstest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/entry"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// docs/clients.md shows what the program prints: of each client that has a section, its blocks are the file, or
// have the text, of the table.
func TestEntriesOfClientsAreTheTable(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs/clients.md"))
	ssetest.Must(t, err)
	open := entry.Server{Name: "demo", URL: "URL"}
	server := open
	server.Token = true
	compared := 0
	for _, c := range entry.All {
		heading := "\n## " + c.Title + "\n"
		if c.Name == "trae" {
			heading = "\n## Entries\n" // the plain one
		}
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
				ssetest.Must(t, json.Unmarshal(c.Document([]entry.Server{server}), &want))
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: docs/clients.md has\n%s\nand the table\n%s", c.Title, text, c.Document([]entry.Server{server}))
				}
			case "sh":
				if !strings.HasSuffix(text, c.Text([]entry.Server{open})+"\n"+c.Text([]entry.Server{server})) {
					t.Errorf("%s: docs/clients.md has\n%s\nand the table\n%s", c.Title, text, c.Text([]entry.Server{server}))
				}
			default:
				text = strings.TrimPrefix(text, "# Pattern: put your URL and TOKEN in.\n")
				if text != c.Text([]entry.Server{server}) {
					t.Errorf("%s: docs/clients.md has\n%s\nand the table\n%s", c.Title, text, c.Text([]entry.Server{server}))
				}
			}
		}
	}
	if compared < 12 {
		t.Errorf("compared %d blocks", compared)
	}
	reference, err := os.ReadFile(filepath.Join(root, "docs/reference/config.md"))
	ssetest.Must(t, err)
	_, clients, _ := strings.Cut(string(reference), "CLIENT is ")
	clients, _, _ = strings.Cut(clients, "; NAME")
	clients = strings.NewReplacer("\n", " ", "`", "", " or ", ", ").Replace(clients)
	if want := strings.Join(entry.Names(), ", "); clients != want {
		t.Errorf("docs/reference/config.md says that CLIENT is %s, want %s", clients, want)
	}
}
