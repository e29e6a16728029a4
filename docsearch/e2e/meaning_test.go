package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// output runs docsearch and returns what it prints.
func (w *world) output(args ...string) string {
	w.Helper()
	cmd := w.command(args...)
	cmd.Stderr = &w.log
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("docsearch %v: %v\n%s", args, err, w.log.String())
	}
	return string(out)
}

// searched returns what docsearch search finds in a folder.
func (w *world) searched(folder, query string) (found api.SearchResponse) {
	w.Helper()
	out := w.output("search", "--folder", folder, "--addr", "127.0.0.1:0", "--json", query)
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	return found
}

// status returns what docsearch status says of the daemon.
func (w *world) status() (server api.ServerInfo) {
	w.Helper()
	var status struct{ Server *api.ServerInfo }
	if err := json.Unmarshal([]byte(w.output("status", "--json")), &status); err != nil || status.Server == nil {
		w.Fatalf("status: %v, %+v", err, status)
	}
	return *status.Server
}

// aboutTokens are the sections of the documents of this repository about tokens and access, by their
// files.
var aboutTokens = map[string][]string{
	"config.md": {"Access", "The file of tokens"},
	"team.md":   {"Tokens: who may come in", "Keeping outsiders away"},
}

// On a fresh machine a question in other words finds a section about tokens, which has none of them,
// in the documents of this repository, and says that its meaning was found.
func TestFreshMachineFindsInOtherWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	found := w.searched(docs, "how do I stop strangers from using it")
	if !strings.HasPrefix(found.Performance.ModelUsed, "hybrid:glove-100d-") || len(found.Warnings) > 0 {
		t.Errorf("%s, %v", found.Performance.ModelUsed, found.Warnings)
	}
	if text := w.output("search", "--folder", docs, "how do I stop strangers from using it"); !strings.Contains(text, "by meaning\n") {
		t.Errorf("for people it does not say what was found by meaning:\n%s", text)
	}
	var headings []string
	for _, result := range found.Results {
		for _, p := range append([]api.Passage{result.Passage}, result.MorePassages...) {
			if p.FoundBy == api.ByMeaning && slices.Contains(aboutTokens[filepath.Base(result.Path)], p.Location.Heading) {
				return
			}
			headings = append(headings, filepath.Base(result.Path)+": "+p.Location.Heading+": "+string(p.FoundBy))
		}
	}
	t.Errorf("no section about tokens is found by meaning:\n%s", strings.Join(headings, "\n"))
}

// hub serves a small model in the place of one that can be installed.
func hub(t *testing.T) string {
	files := http.FileServer(http.Dir("../embed/model2vec/testdata/small"))
	ts := httptest.NewServer(http.StripPrefix("/minishlab/potion-base-8M/resolve/main", files))
	t.Cleanup(ts.Close)
	return ts.URL
}

// A model is installed and used: all is embedded anew, although the daemon is killed meanwhile,
// and searches go on. A damaged model leaves words, says so, and a removed one the model in the
// program.
func TestModelIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	used := func() string {
		w.Helper()
		found := w.searched(w.docs, word(3)+" government prime leaders")
		for _, name := range []string{"doc-3.md", "state.txt"} {
			if !slices.ContainsFunc(found.Results, func(r api.Result) bool { return filepath.Base(r.Path) == name }) &&
				(name == "doc-3.md" || found.Performance.ModelUsed != api.ModelLexical) {
				t.Errorf("%s is not found: %+v", name, found)
			}
		}
		return found.Performance.ModelUsed
	}
	w.write("state.txt", "The president and the minister met other officials of the country.\n")
	if model := used(); !strings.HasPrefix(model, "hybrid:glove-100d-") {
		t.Errorf("at first: %s", model)
	}
	if out := w.output("model", "install", "potion-base-8M", "--source", hub(t)); !strings.Contains(out, "No checksum of it was known") {
		t.Errorf("install says %s", out)
	}
	w.output("model", "use", "potion-base-8M")
	for range 3 {
		used()
		_ = syscall.Kill(w.daemon(), syscall.SIGKILL)
	}
	w.eventually("the new model has made all vectors", func() bool {
		return strings.HasPrefix(used(), "hybrid:potion-base-8M-") && w.status().Embeddings.Chunks == documents+1
	})
	if list := w.output("model", "list"); !strings.Contains(list, "potion-base-8M              installed       in use") {
		t.Errorf("list says\n%s", list)
	}

	path := filepath.Join(w.state, "models", "potion-base-8M", "model.safetensors")
	if err := os.Truncate(path, 1000); err != nil {
		t.Fatal(err)
	}
	w.stop()
	before := w.daemonLog()
	if model := used(); model != "bm25" {
		t.Errorf("with a damaged model: %s", model)
	}
	if warnings := strings.Join(w.status().Warnings, ""); !strings.Contains(warnings, "searches are by words alone: the model cannot be read") {
		t.Errorf("status warns: %s", warnings)
	}
	if n := strings.Count(w.daemonLog()[len(before):], "searches are by words alone"); n != 1 {
		t.Errorf("%d lines of the log say it", n)
	}
	w.output("model", "remove", "potion-base-8M")
	w.eventually("the model of the program is used again", func() bool { return strings.HasPrefix(used(), "hybrid:glove-100d-") })
}

// A model in a folder is used by its path, from wherever the command runs.
func TestModelOfAFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var found api.SearchResponse
	out := w.output("search", "--folder", w.docs, "--addr", "127.0.0.1:0", "--json", "--model", "../embed/model2vec/testdata/small", "government prime leaders")
	if err := json.Unmarshal([]byte(out), &found); err != nil || !strings.HasPrefix(found.Performance.ModelUsed, "hybrid:small-") || len(found.Warnings) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// A daemon goes on with a model that is removed meanwhile. The next one has words alone, and says why.
func TestRemovedModelAnswersUntilTheDaemonEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DOCSEARCH_MODEL=potion-base-8M")
	w.output("model", "install", "potion-base-8M", "--source", hub(t))
	used := func() string {
		return w.searched(w.docs, word(3)+" government prime leaders").Performance.ModelUsed
	}
	w.eventually("the model answers", func() bool { return strings.HasPrefix(used(), "hybrid:potion-base-8M-") })
	pid := w.daemon()
	w.output("model", "remove", "potion-base-8M")
	if model := used(); !strings.HasPrefix(model, "hybrid:potion-base-8M-") || w.daemon() != pid {
		t.Errorf("after its removal: %s", model)
	}
	w.stop()
	if model := used(); model != api.ModelLexical {
		t.Errorf("after another start: %s", model)
	}
	if warnings := strings.Join(w.status().Warnings, ""); !strings.Contains(warnings, "is not installed") {
		t.Errorf("status warns: %s", warnings)
	}
}

func (w *world) daemonLog() string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.state, "daemon.log"))
	if err != nil {
		w.Fatal(err)
	}
	return string(data)
}
