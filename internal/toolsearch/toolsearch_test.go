package toolsearch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/toolsearch"
)

// named returns an index of tools that have a name and no more.
func named(names ...string) *toolsearch.Index {
	var tools []toolsearch.Tool
	for _, name := range names {
		tools = append(tools, toolsearch.Tool{Name: name, Raw: json.RawMessage(fmt.Sprintf(`{"name":%q}`, name))})
	}
	return toolsearch.New(tools)
}

// find returns the names of the first tools that are found.
func find(ix *toolsearch.Index, question string, limit int, allowed func(string) bool) string {
	var names []string
	for _, tool := range ix.Find(question, limit, allowed) {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func TestFind(t *testing.T) {
	ix := named("github__create_issue", "github__listIssues", "files__HTTPServer", "memory.delete-entities", "x__größe", "zip2png")
	for question, want := range map[string]string{
		"":                                 "",
		"the of and":                       "",
		"nothing of that kind":             "",
		"issues":                           "github__create_issue github__listIssues",
		"LIST issue":                       "github__listIssues github__create_issue",
		"http":                             "files__HTTPServer",
		"server":                           "files__HTTPServer",
		"entity":                           "memory.delete-entities",
		"remove":                           "memory.delete-entities",
		"größe":                            "x__größe",
		"zip2png":                          "zip2png",
		"bug":                              "github__create_issue github__listIssues",
		"\xff\xfe list":                    "github__listIssues",
		strings.Repeat("x", 9999):          "",
		strings.Repeat("y ", 600) + "http": "", // it is cut
	} {
		ssetest.Want(t, fmt.Sprintf("%.40q", question), find(ix, question, 10, nil), want)
	}
}

// A tool that the client may not have leaves its place to the next one.
func TestFindAllowed(t *testing.T) {
	ix := named("a__get_issue", "b__get_issue", "c__get_issue")
	ssetest.Want(t, "all", find(ix, "get issue", 2, nil), "a__get_issue b__get_issue")
	notA := func(name string) bool { return name != "a__get_issue" }
	ssetest.Want(t, "without a", find(ix, "get issue", 2, notA), "b__get_issue c__get_issue")
	ssetest.Want(t, "nothing to find in", find(named(), "get issue", 2, nil), "")
}

// A word counts more in a name than in a title, there more than in a description, and least in an argument.
func TestFields(t *testing.T) {
	var tools []toolsearch.Tool
	for _, raw := range []string{
		`{"name":"ka","inputSchema":{"properties":{"wind":{"type":"string"},"other":{"type":"string"},"one":7}}}`,
		`{"name":"kb","inputSchema":{"properties":{"q":{"description":"wind","type":"string"},"other":{},"one":{}}}}`,
		`{"name":"kc","description":"wind of here now"}`,
		`{"name":"kd","title":"wind here now"}`,
		`{"name":"ke","annotations":{"title":"wind here now too"}}`,
		`{"name":"wind","description":"here now"}`,
		`{"name":"kg","inputSchema":{"properties":["wind"]}}`,
	} {
		name := strings.Split(raw, `"`)[3]
		tools = append(tools, toolsearch.Tool{Name: name, Raw: json.RawMessage(raw)})
	}
	ssetest.Want(t, "wind", find(toolsearch.New(tools), "wind", 10, nil), "wind kd ke kc ka kb")
}

func FuzzFind(f *testing.F) {
	for _, q := range questions(f, "questions.json") {
		f.Add(q.Question, q.Tool)
	}
	f.Add("\x00é́ĀĂ ǅ", "aB_C-d.É")
	ix := toolsearch.New(toolsOf(f, asked...))
	f.Fuzz(func(t *testing.T, question, name string) {
		found := ix.Find(question, 10, nil)
		if len(found) > 10 {
			t.Errorf("%d tools", len(found))
		}
		ssetest.Want(t, "the second time", fmt.Sprint(ix.Find(question, 10, nil)), fmt.Sprint(found))
		raw, err := json.Marshal(map[string]string{"name": name, "description": question})
		ssetest.Must(t, err)
		named := toolsearch.New([]toolsearch.Tool{{Name: name, Raw: raw}})
		for _, tool := range named.Find(question+" "+name, 1, nil) {
			ssetest.Want(t, "name", tool.Name, name)
		}
	})
}

// A view builds the index of its tools once, for all clients.
func BenchmarkNew(b *testing.B) {
	var tools []toolsearch.Tool
	for len(tools) < 2000 {
		tools = append(tools, toolsOf(b, asked...)...)
	}
	for b.Loop() {
		toolsearch.New(tools[:2000])
	}
}

func BenchmarkFind(b *testing.B) {
	var tools []toolsearch.Tool
	for len(tools) < 2000 {
		tools = append(tools, toolsOf(b, asked...)...)
	}
	ix := toolsearch.New(tools[:2000])
	for b.Loop() {
		ix.Find("what files changed in this pull request", 10, nil)
	}
}
