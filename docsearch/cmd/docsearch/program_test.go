package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/fatih/color"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// run runs a command line with a state directory in which no daemon runs.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	state := t.TempDir()
	var out, errs bytes.Buffer
	p := &program{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(name string) string {
		return map[string]string{"XDG_STATE_HOME": state}[name]
	}}
	code = p.run(context.Background(), args)
	return code, out.String(), errs.String()
}

func TestWrongUseIsExplained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "expected one of"},
		{[]string{"find"}, "unexpected argument find"},
		{[]string{"search"}, `expected "<query> ..."`},
		{[]string{"search", "--folder", "/nowhere", "word"}, "--folder /nowhere: "},
		{[]string{"search", "--folder", "", "word"}, "a path is empty"},
		{[]string{"search", "--folder", "docs=" + filepath.Dir(file), "word"}, "all folders of a daemon have one model"},
		{[]string{"mcp", "--folder", "docs=nomic-embed-text"}, "all folders of a daemon have one model"},
		{[]string{"mcp", "--folder", file}, "not a folder"},
		{[]string{"mcp", "--embeddings-url", "http://127.0.0.1:1"}, "must be given together"},
		{[]string{"mcp", "--embeddings-url", "nonsense", "--embeddings-model", "m"}, "must begin with http"},
		{[]string{"mcp", "--embeddings-url", "http://127.0.0.1:1", "--embeddings-model", "m", "--embeddings-key-file", file}, "the file is empty"},
		{[]string{"mcp", "--embeddings-url", "http://127.0.0.1:1", "--embeddings-model", "m", "--embeddings-key-file", file + "2"}, "--embeddings-key-file: "},
		{[]string{"mcp", "--log-level", "loud"}, "loud"},
		{[]string{"daemon", "--idle-timeout", "soon"}, "soon"},
	} {
		code, stdout, stderr := run(t, tc.args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, tc.want) {
			t.Errorf("%q: exit code %d, %q, %q; want 2, and %q on stderr", tc.args, code, stdout, stderr, tc.want)
		}
	}
}

// TestKeyFileIsUsed has a key in a file, which goes before that of the environment, and never into
// a command line.
func TestKeyFileIsUsed(t *testing.T) {
	var got string
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[1]}]}`))
	}))
	defer ts.Close()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("key", []byte("secret-of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &program{getenv: func(name string) string {
		return map[string]string{"DOCSEARCH_EMBEDDINGS_KEY": "secret-of-environment"}[name]
	}}
	for file, want := range map[string]string{"key": "Bearer secret-of-file", "": "Bearer secret-of-environment"} {
		c := common{EmbeddingsURL: ts.URL, EmbeddingsModel: "m", EmbeddingsKey: file}
		endpoint, err := c.endpoint(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := endpoint.Embed(t.Context(), []string{"text"}); err != nil || got != want {
			t.Errorf("key file %q: the endpoint got %q, %v, want %q", file, got, err, want)
		}
		args := strings.Join(c.daemonArgs("/state", slog.LevelInfo), " ")
		if strings.Contains(args, "secret") {
			t.Errorf("the command line of the daemon has the key: %s", args)
		}
		if file != "" && !strings.Contains(args, "--embeddings-key-file "+string(filepath.Separator)) {
			t.Errorf("the daemon, whose working directory is another, gets %s", args)
		}
	}
}

// large is a model of some bytes.
type large int64

func (l large) Bytes() int64 { return int64(l) }

func TestModelsRaiseTheLimitOfMemory(t *testing.T) {
	before := debug.SetMemoryLimit(memoryLimit)
	defer debug.SetMemoryLimit(before)
	limit := ""
	p := &program{getenv: func(string) string { return limit }}
	p.makeRoom(large(1000))
	p.makeRoom(struct{}{}) // takes nothing that counts
	if got := debug.SetMemoryLimit(-1); got != memoryLimit+1000 {
		t.Errorf("the limit is %d", got)
	}
	limit = "100MiB"
	p.makeRoom(large(1000))
	if got := debug.SetMemoryLimit(-1); got != memoryLimit+1000 {
		t.Errorf("with GOMEMLIMIT: the limit is %d", got)
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	code, stdout, _ := run(t, "--help")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, command := range []string{"search", "model", "mcp", "status", "remove", "stop", "daemon"} {
		if !strings.Contains(stdout, "\n  "+command+" ") {
			t.Errorf("the help has no command %s:\n%s", command, stdout)
		}
	}
	if strings.Contains(stdout, "extract-worker") {
		t.Error("the help shows the hidden command")
	}
}

func TestStatusAndStopWithoutADaemon(t *testing.T) {
	for command, want := range map[string]string{"status": "No daemon runs", "stop": "No daemon runs"} {
		if code, stdout, stderr := run(t, command); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit code %d, %q, %q", command, code, stdout, stderr)
		}
	}
	code, stdout, _ := run(t, "status", "--json")
	var got status
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || got.Running {
		t.Errorf("status --json: exit code %d, %q, %v", code, stdout, err)
	}
}

// found has what could confuse a terminal or a reader.
var found = &api.SearchResponse{
	Results: []api.Result{
		{DocumentName: "River\x1b[31m", Path: "/docs/river.md", Passage: api.Passage{Relevance: 0.934, FoundBy: api.ByWords, Location: api.Location{Line: 3, EndLine: 5},
			Snippet: "the hippo bathes\n\tin the river\x1b]0;title\a", Highlights: []api.Highlight{{Start: 4, End: 9}}},
			MorePassages: []api.Passage{
				{Relevance: 0.9, FoundBy: api.ByWords, Location: api.Location{Line: 7}, Snippet: "a hippo"},
				{Relevance: 0.4, FoundBy: api.ByMeaning, Location: api.Location{Line: 9, Heading: "Bathing"}, Snippet: "it swims"},
			}},
		{DocumentName: "Report", Path: "/docs/report.pdf", Passage: api.Passage{Relevance: 0.5, Location: api.Location{Line: 40, EndLine: 41, Page: 7},
			Snippet: "no match"}},
	},
	Performance: api.Performance{SearchTime: 1.25, ModelUsed: api.ModelLexical},
	Warnings:    []string{"/docs is being indexed, 40 % done"},
}

const plain = ` 1. River[31m  93 %, by words
    /docs/river.md:3
    the hippo bathes in the river]0;title

    /docs/river.md:7
    a hippo

    /docs/river.md:9, Bathing  40 %, by meaning
    it swims

 2. Report  50 %
    /docs/report.pdf, page 7
    no match

Warning: /docs is being indexed, 40 % done
2 documents in 1.2 ms (bm25)
`

func TestResultsAreForPeople(t *testing.T) {
	var b strings.Builder
	color.NoColor = true
	printFound(&b, found)
	if b.String() != plain {
		t.Errorf("got\n%s\nwant\n%s", b.String(), plain)
	}
}

func TestColoursMarkMatches(t *testing.T) {
	var b strings.Builder
	color.NoColor = false
	printFound(&b, found)
	if want := "\x1b[33;1mhippo\x1b[0"; !strings.Contains(b.String(), want) {
		t.Errorf("got %q, want %q in it", b.String(), want)
	}
	if strings.Contains(b.String(), "\x1b]0") || strings.Contains(b.String(), "River\x1b") {
		t.Errorf("a document controls the terminal: %q", b.String())
	}
}

func TestStatusDoesNotControlTheTerminal(t *testing.T) {
	var b strings.Builder
	status{
		Running: true, Server: &api.ServerInfo{Warnings: []string{"evil\x1b[2J"}, Embeddings: &api.Embeddings{Model: "m\x1b]0;t\a"}},
		Folders: []api.Folder{{Path: "/e\x1b]0;PWNED\a\u202evil"}},
	}.print(&b, "/state")
	if strings.ContainsAny(b.String(), "\x1b\a\u202e") {
		t.Errorf("got %q", b.String())
	}
	if _, _, stderr := run(t, "search", "--folder", "/x\x1b[2J", "word"); strings.Contains(stderr, "\x1b") {
		t.Errorf("got %q", stderr)
	}
}

func TestNothingFound(t *testing.T) {
	var b strings.Builder
	color.NoColor = true
	printFound(&b, &api.SearchResponse{})
	if !strings.HasPrefix(b.String(), "Nothing found.\n") {
		t.Errorf("got %q", b.String())
	}
}
