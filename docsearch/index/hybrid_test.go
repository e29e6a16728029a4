package index_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// topics is an Embedder that knows of each word which topic it is of. As real models, it
// finds some similarity in any two texts.
type topics struct {
	mu         sync.Mutex
	model      string
	fails      error
	hangs      bool
	more       int    // dimensions than at first
	batch      int    // texts that it gets at a time
	failsAfter int    // texts; 0: never
	ignores    string // texts with it have no vector
	texts      int
	topics     map[string]int
}

func newTopics(model string) *topics {
	t := &topics{model: model, topics: map[string]int{}}
	for n, words := range []string{"car automobile vehicle", "doctor physician medic", "ship vessel freighter", "rain drizzle shower"} {
		for word := range strings.FieldsSeq(words) {
			t.topics[word] = n
		}
	}
	return t
}

func (e *topics) Model() string { return e.model }

// Known makes it an Embedder that knows all texts.
func (e *topics) Known(string) float64 { return 1 }

// Batch makes it an Embedder that needs no other program.
func (e *topics) Batch() int { return max(1, e.batch) }

func (e *topics) Embed(ctx context.Context, texts []string) (all [][]float32, err error) {
	e.mu.Lock()
	fails, hangs, more := e.fails, e.hangs, e.more
	if e.failsAfter > 0 && e.texts >= e.failsAfter {
		fails = errors.New("killed")
	}
	e.texts += len(texts)
	e.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, text := range texts {
		v := make([]float32, 40+more)
		if e.ignores != "" && strings.Contains(text, e.ignores) {
			all = append(all, v)
			continue
		}
		v[0] = 1
		for word := range strings.FieldsSeq(strings.ToLower(strings.Trim(text, "."))) {
			if topic, ok := e.topics[word]; ok {
				v[1+topic] += 2
			}
		}
		v[8+len(text)%32] += 0.7
		all = append(all, v)
	}
	return all, fails
}

func (e *topics) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

var meant = []index.Change{
	text("car.txt", "The car club meets on Sundays at the harbour"), text("doctor.txt", "A doctor in Kyoto works at night"),
	text("ship.txt", "The ship brings paper if the ice allows it"), text("rain.txt", "Expect rain in June and moss after it"),
	text("none.txt", "Lessons begin with a bell and end with the same one"),
}

func embedAll(t *testing.T, x *index.Index) {
	t.Helper()
	if err := x.EmbedMissing(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSearchByMeaning(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{Embedder: newTopics("m")})
	update(t, x, meant...)
	embedAll(t, x)
	for query, want := range map[string]string{
		"automobile": "[car.txt]", "physician": "[doctor.txt]", "vessel paper": "[ship.txt]", "drizzle in June": "[rain.txt]",
		"zzqqxx": "[]", "zzqqxx wwyyuu": "[]", `"car club" vehicle`: "[car.txt]", `"no such phrase" vehicle`: "[]", "vehicle -club": "[]",
	} {
		if got := find(t, x, index.Query{Text: query, Threshold: 0.3}); fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
	r, err := x.Search(t.Context(), index.Query{Text: "car ship"})
	if err != nil || r.Performance.ModelUsed != "hybrid:m" || len(r.Warnings) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	alone, err := x.Search(t.Context(), index.Query{Text: "automobile"})
	if err != nil || alone.Results[0].Relevance >= 0.95 || alone.Results[0].Snippet == "" {
		t.Errorf("%+v, %v", alone, err)
	}
	q := index.Query{Text: "the car vehicle in June", Limit: 100}
	want := pages(t, x, q)
	q.Limit = 1
	if got := pages(t, x, q); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("page by page: got %v, want %v", got, want)
	}
}

func TestVectorsAreReused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	e := newTopics("m")
	x := openAt(t, dir, index.Options{Embedder: e})
	update(t, x, meant...)
	embedAll(t, x)
	before := e.texts
	moved := meant[1]
	moved.Path = "moved.txt"
	update(t, x, text("car.txt", "Something else about a vehicle"), moved, meant[2])
	embedAll(t, x)
	if e.texts != before+1 {
		t.Errorf("%d texts after one change", e.texts-before)
	}
	x.Close()
	x = openAt(t, dir, index.Options{Embedder: e})
	embedAll(t, x)
	if _, vectors, err := x.Size(); err != nil || vectors != len(meant)+1 || e.texts != before+1 {
		t.Errorf("after another start: %d vectors, %v, %d texts", vectors, err, e.texts-before)
	}
	if got := find(t, x, index.Query{Text: "medic", Threshold: 0.3}); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	e.set(func() { e.more = 1 }) // the model changes its mind
	update(t, x, text("new.txt", "a new automobile"))
	embedAll(t, x)
	embedAll(t, x) // the vectors before have gone
	x.Close()
	other := newTopics("other")
	x = openAt(t, dir, index.Options{Embedder: other})
	if _, vectors, _ := x.Size(); vectors != 0 {
		t.Errorf("%d vectors of the old model", vectors)
	}
	embedAll(t, x)
	if got := find(t, x, index.Query{Text: "freighter", Threshold: 0.3}); fmt.Sprint(got) != "[ship.txt]" {
		t.Errorf("got %v", got)
	}
	update(t, x, index.Change{Path: "car.txt", Delete: true}, index.Change{Path: "new.txt", Delete: true}, index.Change{Path: "none.txt", Delete: true},
		index.Change{Path: "ship.txt", Delete: true})
	embedAll(t, x) // the vectors of what is gone go too
	if got := find(t, x, index.Query{Text: "shower", Threshold: 0.3}); fmt.Sprint(got) != "[rain.txt]" {
		t.Errorf("got %v", got)
	}
}

// endpoint is an Embedder at an address.
type endpoint struct {
	*topics
	address string
}

func (e endpoint) Address() string { return e.address }

func TestVectorsOfAnotherEndpointAreNotUsed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	for _, tc := range []struct {
		address string
		kept    int
	}{{"one:80/v1", 0}, {"one:80/v1", len(meant)}, {"two:80/v1", 0}, {"two:80/v2", 0}} {
		x := openAt(t, dir, index.Options{Embedder: endpoint{newTopics("m"), tc.address}})
		update(t, x, meant...)
		if _, vectors, err := x.Size(); err != nil || vectors != tc.kept {
			t.Errorf("%s: %d vectors, %v, want %d", tc.address, vectors, err, tc.kept)
		}
		embedAll(t, x)
		x.Close()
	}
}

// A damaged file of vectors costs no more than other requests for them.
func TestDamagedVectorsAreMadeAnew(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 100, 4096, 4150} {
		dir := filepath.Join(t.TempDir(), "index")
		x := openAt(t, dir, index.Options{Embedder: newTopics("m")})
		update(t, x, meant...)
		embedAll(t, x)
		x.Close()
		if err := os.Truncate(files(t, dir, "vectors")[0], int64(n)); err != nil {
			t.Fatal(err)
		}
		x = openAt(t, dir, index.Options{Embedder: newTopics("m")})
		embedAll(t, x)
		if got := find(t, x, index.Query{Text: "freighter", Threshold: 0.3}); fmt.Sprint(got) != "[ship.txt]" || x.Rebuilt() != "" {
			t.Errorf("cut at %d: got %v, %s", n, got, x.Rebuilt())
		}
	}
}

// Each search says at once that the endpoint fails, and why.
func TestFailingEndpointLeavesWords(t *testing.T) {
	t.Parallel()
	e := newTopics("m")
	x := open(t, index.Options{Embedder: e})
	update(t, x, meant...)
	check := func(query, model, warning string) {
		t.Helper()
		r, err := x.Search(t.Context(), index.Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		if r.Performance.ModelUsed != model || len(r.Results) == 0 || (warning == "") != (len(r.Warnings) == 0) || !strings.Contains(fmt.Sprint(r.Warnings), warning) {
			t.Errorf("%s: %s, %v, %d results", query, r.Performance.ModelUsed, r.Warnings, len(r.Results))
		}
	}
	check("harbour", "bm25", "no document has a vector yet")
	embedAll(t, x)
	check("harbour", "hybrid:m", "")
	e.set(func() { e.fails = errors.New("no such model") })
	if why := x.EmbedderFailure(t.Context()); !strings.Contains(why, "no such model") {
		t.Errorf("right after it worked: %q", why)
	}
	check("Kyoto", "bm25", "no such model")
	before := e.texts
	check("harbour", "bm25", "no such model")
	if why := x.EmbedderFailure(t.Context()); !strings.Contains(why, "no such model") || e.texts != before {
		t.Errorf("asked again so soon: %q after %d texts", why, e.texts-before)
	}
	update(t, x, text("new.txt", "new words"))
	if err := x.EmbedMissing(t.Context()); err == nil {
		t.Error("EmbedMissing hides the failure")
	}
	e.set(func() { e.fails = nil })
	embedAll(t, x)
	check("Kyoto", "hybrid:m", "") // it has been asked for the new words
}

func TestSlowEmbedderDelaysNoSearch(t *testing.T) {
	t.Parallel()
	e := newTopics("m")
	x := open(t, index.WithQueryTimeout(index.Options{Embedder: e}, 20*time.Millisecond))
	update(t, x, meant...)
	embedAll(t, x)
	e.set(func() { e.hangs = true })
	before := e.texts
	for range 3 {
		r, err := x.Search(t.Context(), index.Query{Text: "harbour"})
		if err != nil || len(r.Warnings) != 1 || len(r.Results) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if e.texts != before+1 {
		t.Errorf("asked %d times", e.texts-before)
	}
}

func TestCloseInterruptsEmbedding(t *testing.T) {
	t.Parallel()
	e := newTopics("m")
	e.hangs = true
	x := open(t, index.Options{Embedder: e})
	update(t, x, meant...)
	done := make(chan error)
	go func() { done <- x.EmbedMissing(context.WithoutCancel(t.Context())) }()
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, index.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// former returns the Embedder of one model.
func former(e *topics) func(string) index.Embedder {
	return func(model string) index.Embedder {
		if model != e.model {
			return nil
		}
		return e
	}
}

// While the vectors of another model are made, those of the model before answer, also after the
// process was killed meanwhile, and what was made until then is kept.
func TestOldModelAnswersUntilTheNewOneIsComplete(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	old := newTopics("old")
	x := openAt(t, dir, index.Options{Embedder: old})
	update(t, x, meant...)
	embedAll(t, x)
	x.Close()
	check := func(model string) {
		t.Helper()
		r, err := x.Search(t.Context(), index.Query{Text: "freighter", Threshold: 0.3})
		if err != nil || len(r.Results) != 1 || filepath.Base(r.Results[0].Path) != "ship.txt" || r.Performance.ModelUsed != "hybrid:"+model {
			t.Errorf("%+v, %v, want ship.txt by %s", r, err, model)
		}
		if former := x.FormerModel(); former != strings.TrimPrefix(model, "now") {
			t.Errorf("the model before that answers is %q, want that of %s", former, model)
		}
	}
	now := newTopics("now")
	now.batch, now.failsAfter = 1, 3 // texts and the unrelated ones are asked for one by one
	x = openAt(t, dir, index.Options{Embedder: now, Former: former(old)})
	check("old")
	if err := x.EmbedMissing(t.Context()); err == nil {
		t.Fatal("the embedder did not fail")
	}
	made := now.texts
	check("old")
	x.Close()
	now.set(func() { now.failsAfter = 0 })
	x = openAt(t, dir, index.Options{Embedder: now, Former: former(old)})
	check("old")
	embedAll(t, x)
	check("now")
	if again := now.texts - made; again > len(meant)+1 {
		t.Errorf("%d texts were embedded after %d: what was made is lost", again, made)
	}
	x.Close()
	x = openAt(t, dir, index.Options{Embedder: now, Former: former(old)})
	check("now")
	embedAll(t, x)
	if names, err := filepath.Glob(filepath.Join(dir, "*", "vectors*")); len(names) != 1 || filepath.Base(names[0]) != "vectors" {
		t.Errorf("files of vectors: %v, %v", names, err)
	}
}

// Folders share the model before, and it is given up when the last of them has other vectors.
func TestFormerModelIsOpenedOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	old, now := newTopics("old"), newTopics("now")
	all := []string{folder, "/more", "/most"}
	x := openAt(t, dir, index.Options{Embedder: old})
	for _, path := range all {
		if err := x.AddFolder(path); err != nil {
			t.Fatal(err)
		}
		if err := x.Update(t.Context(), path, meant); err != nil {
			t.Fatal(err)
		}
	}
	embedAll(t, x)
	x.Close()
	opened := 0
	x = openAt(t, dir, index.Options{Embedder: now, Former: func(model string) index.Embedder {
		opened++
		return former(old)(model)
	}})
	for n, path := range all {
		if opened != 1 || x.Formers() != 1 {
			t.Errorf("before folder %d: %d times opened, %d models before", n, opened, x.Formers())
		}
		if err := x.EmbedFolder(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	if x.Formers() != 0 {
		t.Error("the model before is still there")
	}
	x.Close() // gives up nothing twice
}

// A text that the model does not understand is found by its words, and the hit says so.
func TestHitsSayWhyTheyWereFound(t *testing.T) {
	t.Parallel()
	e := newTopics("m")
	e.ignores = "xqzz"
	x := open(t, index.Options{Embedder: e})
	update(t, x, append(meant[:len(meant):len(meant)], text("strange.txt", "xqzz harbour automobile"))...)
	embedAll(t, x)
	r, err := x.Search(t.Context(), index.Query{Text: "automobile car"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]api.Passage{}
	for _, result := range r.Results {
		got[filepath.Base(result.Path)] = result.Passage
	}
	if p := got["car.txt"]; p.FoundBy != api.ByBoth || p.WordScore <= 0 || p.MeaningScore < 0.2 || p.Relevance <= max(p.WordScore, p.MeaningScore) {
		t.Errorf("car.txt: %+v", p)
	}
	if p := got["strange.txt"]; p.FoundBy != api.ByWords || p.MeaningScore != 0 || p.Relevance != p.WordScore {
		t.Errorf("strange.txt: %+v", p)
	}
	r, err = x.Search(t.Context(), index.Query{Text: "vessel"})
	if err != nil || len(r.Results) == 0 || r.Results[0].FoundBy != api.ByMeaning || r.Results[0].WordScore != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = x.Search(t.Context(), index.Query{Concepts: []string{"vessel"}})
	if err != nil || len(r.Results) == 0 || filepath.Base(r.Results[0].Path) != "ship.txt" || r.Results[0].FoundBy != api.ByMeaning {
		t.Errorf("a concept: %+v, %v", r, err)
	}
	r, err = x.Search(t.Context(), index.Query{Terms: []string{"vessel"}})
	if err != nil || len(r.Results) != 0 {
		t.Errorf("an exact term: %+v, %v", r, err)
	}
	r, err = x.Search(t.Context(), index.Query{Text: "xqzz"})
	if err != nil || r.Performance.ModelUsed != "bm25" || len(r.Warnings) != 0 || len(r.Results) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Exact terms, phrases and identifiers come first, and terms are no part of what the model is
// asked.
func TestExactTermsComeFirst(t *testing.T) {
	t.Parallel()
	e := newTopics("m")
	x := open(t, index.Options{Embedder: e})
	update(t, x, append(meant[:len(meant):len(meant)],
		text("part.txt", "Number KX 20417 is in the cellar, among many other things that nobody has counted"))...)
	embedAll(t, x)
	q := index.Query{Concepts: []string{"automobile", "car club", "Sundays harbour"}, Terms: []string{"KX-20417"}}
	if got := find(t, x, q); len(got) < 2 || got[0] != "part.txt" || got[1] != "car.txt" {
		t.Errorf("got %v", got)
	}
	if got := found(t, x, `"KX 20417" OR car OR club OR Sundays OR harbour`); !strings.HasPrefix(got, "[part.txt car.txt") {
		t.Errorf("got %v", got)
	}
	update(t, x, text("code.txt", "carLimit is in a file of code, among many other things that nobody has counted"))
	embedAll(t, x)
	if got := found(t, x, "carLimit of an automobile of the car club"); !strings.HasPrefix(got, "[code.txt car.txt") {
		t.Errorf("an identifier: got %v", got)
	}
	update(t, x, text("word.txt", "A server of 30 s, the 1 st carpet and an input are among many other things that nobody has counted"))
	embedAll(t, x)
	for _, word := range []string{"server's", "after 30s", "1st", "carpet-car", "input/in"} {
		if got := found(t, x, word+" automobile of the car club on Sundays at the harbour"); !strings.HasPrefix(got, "[car.txt") {
			t.Errorf("%s is no identifier: got %v", word, got)
		}
	}
	before := e.texts
	r, err := x.Search(t.Context(), index.Query{Terms: []string{"harbour"}})
	if err != nil || r.Performance.ModelUsed != "bm25" || e.texts != before || len(r.Results) != 1 {
		t.Errorf("%+v, %v, %d texts", r, err, e.texts-before)
	}
}
