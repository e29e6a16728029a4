package toolsearch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/toolsearch"
)

// question is a question with the tool that should be found, as SERVER/TOOL.
type question struct{ Words, Question, Tool string }

// questions reads a file of questions.
func questions(t testing.TB, file string) (all []question) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	ssetest.Must(t, err)
	ssetest.Must(t, json.Unmarshal(data, &all))
	return all
}

// toolsOf reads the lists of servers, as a view of them has their tools.
func toolsOf(t testing.TB, servers ...string) (all []toolsearch.Tool) {
	t.Helper()
	for _, server := range servers {
		data, err := os.ReadFile(filepath.Join("testdata", "lists", server+".json"))
		ssetest.Must(t, err)
		rawjson.Each(rawjson.Compact(data), func(raw json.RawMessage) {
			name, _ := rawjson.MemberText(raw, "name")
			all = append(all, toolsearch.Tool{Name: server + "__" + name, Raw: raw})
		})
	}
	return all
}

// The lists of the questions, and those of the others.
var (
	asked  = []string{"everything", "filesystem", "memory", "github", "notion"}
	unseen = []string{"gitlab", "slack", "google-maps"}
)

// recall returns the part of questions whose tool is among the first n that are found, and logs the others.
func recall(t *testing.T, ix *toolsearch.Index, of []question, n int) float64 {
	t.Helper()
	hits := make(map[string]int)
	total := make(map[string]int)
	for _, q := range of {
		total[q.Words]++
		server, tool := filepath.Split(q.Tool)
		want := filepath.Clean(server) + "__" + tool
		rank := 0
		for i, found := range ix.Find(q.Question, n, nil) {
			if found.Name == want {
				rank = i + 1
			}
		}
		if rank == 0 {
			t.Logf("not found (%s words): %s: %s", q.Words, q.Question, want)
			continue
		}
		hits[q.Words]++
	}
	all := 0
	for words, n := range total {
		t.Logf("%q words: %d of %d", words, hits[words], n)
		all += hits[words]
	}
	return float64(all) / float64(len(of))
}

// The questions were written before the search.
func TestRecall(t *testing.T) {
	ix := toolsearch.New(toolsOf(t, asked...))
	if got := recall(t, ix, questions(t, "questions.json"), 10); got < 0.9 {
		t.Errorf("recall@10 is %.3f, and must be 0.9", got)
	}
}

// These questions show how much the search is tuned to those above. The last ones were written after the words that
// mean the same, and have changed nothing.
func TestRecallOfOtherQuestions(t *testing.T) {
	ix := toolsearch.New(toolsOf(t, append(asked, unseen...)...))
	for _, file := range []string{"unseen.json", "later.json"} {
		t.Logf("%s: recall@10 is %.3f", file, recall(t, ix, questions(t, file), 10))
	}
}
