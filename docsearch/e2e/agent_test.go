package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An agent over stdio: parallel searches get their own answers, and the tools agree
// with one another.
func TestAgentOverStdio(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.agent()
	w.ready(s)
	w.findAll(s)

	var found answer
	if err := call(t.Context(), s, "search_content", map[string]any{"exact_terms": []string{word(7)}, "semantic_concepts": []string{"river"}}, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Results) == 0 || filepath.Base(found.Results[0].Path) != "doc-7.md" {
		t.Fatalf("search_content found %v, want doc-7.md first", found.Results)
	}
	var document struct {
		Text string `json:"text"`
	}
	if err := call(t.Context(), s, "get_document_data", map[string]any{"document_id": found.Results[0].DocumentID}, &document); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(document.Text, word(7)) {
		t.Errorf("the document's text is %q", document.Text)
	}
	resource, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "docs://documents/" + found.Results[0].DocumentID})
	if err != nil || !strings.Contains(resource.Contents[0].Text, word(7)) {
		t.Errorf("the resource: %v, %v", resource, err)
	}
	var folders struct {
		Folders []struct {
			Path      string `json:"path"`
			Documents int    `json:"documents"`
		} `json:"folders"`
	}
	if err := call(t.Context(), s, "list_folders", nil, &folders); err != nil {
		t.Fatal(err)
	}
	if len(folders.Folders) != 1 || folders.Folders[0].Documents != documents {
		t.Errorf("list_folders = %+v", folders)
	}
	var info struct {
		PID int `json:"pid"`
	}
	if err := call(t.Context(), s, "get_server_info", nil, &info); err != nil {
		t.Fatal(err)
	}
	if info.PID != w.daemon() {
		t.Errorf("get_server_info names pid %d, the daemon has %d", info.PID, w.daemon())
	}
}

// The TypeScript SDK does the same.
func TestTypeScriptAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready(w.agent())
	// The packages are those of the gateway's tests.
	script, err := filepath.Abs("clients/search.mjs")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for n := range 8 {
		words = append(words, word(n))
	}
	cmd := exec.Command("node", append([]string{script, binary(t, "docsearch"), w.docs}, words...)...)
	cmd.Env = w.command().Env
	cmd.Stderr = &w.log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, w.log.String())
	}
	var got struct {
		Tools   []string `json:"tools"`
		Results []answer `json:"results"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := "get_document_data get_server_info list_folders search search_content"; strings.Join(got.Tools, " ") != want {
		t.Errorf("tools = %v, want %s", got.Tools, want)
	}
	for n, a := range got.Results {
		if want := fmt.Sprintf("doc-%d.md", n); len(a.Results) != 1 || filepath.Base(a.Results[0].Path) != want {
			t.Errorf("search %d found %v, want %s", n, a.Results, want)
		}
	}
	if len(got.Results) != len(words) {
		t.Errorf("%d answers to %d searches", len(got.Results), len(words))
	}
}

// An agent and the command line get the same passages of a document, each with the heading
// of its section and without the marks around matched words.
func TestSectionsAreFoundByAgentsAndCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var handbook strings.Builder
	handbook.WriteString("# Handbook\n\n")
	for n := range 40 {
		fmt.Fprintf(&handbook, "## Chapter %d\n\nSome sentence of this chapter.\n", n)
		if n%8 == 3 {
			handbook.WriteString("Here the okapi is explained.\n")
		}
	}
	w.write("handbook.md", handbook.String())
	s := w.agent()
	w.ready(s)
	type passage struct {
		Location struct {
			Heading string `json:"heading"`
		} `json:"location"`
	}
	type found struct {
		Results []struct {
			passage
			MorePassages []passage `json:"morePassages"`
		} `json:"results"`
	}
	check := func(by string, raw []byte) {
		t.Helper()
		var got found
		if err := json.Unmarshal(raw, &got); err != nil || len(got.Results) != 1 {
			t.Fatalf("%s: %v, %s", by, err, raw)
		}
		var headings []string
		for _, p := range append([]passage{got.Results[0].passage}, got.Results[0].MorePassages...) {
			headings = append(headings, p.Location.Heading)
		}
		if want := "[Chapter 3 Chapter 11 Chapter 19 Chapter 27 Chapter 35]"; fmt.Sprint(headings) != want {
			t.Errorf("%s: got %v, want %s", by, headings, want)
		}
		if strings.ContainsAny(string(raw), "\ue000\ue001") {
			t.Errorf("%s: marks in %s", by, raw)
		}
	}
	for tool, args := range map[string]map[string]any{
		"search":         {"query": "okapi"},
		"search_content": {"exact_terms": []string{"okapi"}},
	} {
		var raw json.RawMessage
		if err := call(t.Context(), s, tool, args, &raw); err != nil {
			t.Fatal(err)
		}
		check(tool, raw)
	}
	out, err := w.command("search", "--folder", w.docs, "--json", "okapi").Output()
	if err != nil {
		t.Fatal(err)
	}
	check("docsearch search --json", out)
}

// A file that is written, changed, ignored or removed is found, or not, soon after.
func TestChangesAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.agent()
	w.ready(s)
	paths := func(query string) (found []string) {
		var got answer
		if err := call(t.Context(), s, "search", map[string]any{"query": query}, &got); err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Results {
			found = append(found, filepath.Base(r.Path))
		}
		return found
	}
	w.write("new.txt", "an okapi was seen\n")
	w.eventually("a new file is found", func() bool { return fmt.Sprint(paths("okapi")) == "[new.txt]" })
	w.write("new.txt", "a quokka was seen\n")
	w.eventually("what changed is found", func() bool { return fmt.Sprint(paths("quokka")) == "[new.txt]" })
	if got := paths("okapi"); len(got) > 0 {
		t.Errorf("the old text is found in %v", got)
	}
	w.write(".gitignore", "new.txt\n")
	w.eventually("an ignored file is not found", func() bool { return len(paths("quokka")) == 0 })
}
