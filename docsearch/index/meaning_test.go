package index_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/static"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/vectors"
)

// kinds are the kinds of judged queries.
var kinds = []string{"same", "other", "mixed"}

// judged is a query of testdata/meaning, and the grades of the passages that answer it.
type judged struct {
	kind, query string
	grades      map[string]int
}

// judgedQueries returns the queries of testdata/meaning.
func judgedQueries(t *testing.T, known map[string]string) (all []judged) {
	t.Helper()
	form := regexp.MustCompile(`^(same|other|mixed): (.+) => (.+)$`)
	for line := range strings.Lines(readFile(t, "testdata/meaning/queries.txt")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := form.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a judged query: %s", line)
		}
		q := judged{m[1], m[2], map[string]int{}}
		for answer := range strings.SplitSeq(m[3], ", ") {
			id, grade, _ := strings.Cut(answer, " ")
			n, err := strconv.Atoi(grade)
			if err != nil || n < 1 || n > 2 || known[id] == "" {
				t.Fatalf("%s: no such passage or grade: %q", q.query, answer)
			}
			q.grades[id] = n
		}
		all = append(all, q)
	}
	return all
}

// judgedPassages returns the passages of testdata/meaning by their ids.
func judgedPassages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	id := ""
	for line := range strings.Lines(readFile(t, "testdata/meaning/passages.txt")) {
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			id = strings.TrimSuffix(strings.TrimSpace(name), " --")
			continue
		}
		all[id] += line
	}
	return all
}

// fillPassages adds each passage as a document, whose name says nothing, and returns the ids
// of the passages by these names.
func fillPassages(t *testing.T, x *index.Index, passages map[string]string) map[string]string {
	t.Helper()
	var all []index.Change
	ids := map[string]string{}
	for n, id := range slices.Sorted(maps.Keys(passages)) {
		name := fmt.Sprintf("%03d.txt", n)
		ids[name] = id
		all = append(all, index.Change{Path: name, Stamp: index.Stamp{Size: int64(len(passages[id]))},
			Document: &extract.Document{Type: "text", Text: passages[id]}})
	}
	fill(t, x, all)
	return ids
}

// quality is how well the first ten results answer queries, on average.
type quality struct{ ndcg, recall float64 }

// measure returns the quality of a search by the kind of the queries. search returns the
// ids of the passages that it finds, best first.
func measure(queries []judged, search func(query string) []string) map[string]quality {
	sums, counts := map[string]quality{}, map[string]float64{}
	for _, q := range queries {
		sum := sums[q.kind]
		got := search(q.query)
		got = got[:min(10, len(got))]
		gain, recalled := 0.0, 0
		for place, id := range got {
			gain += gainAt(q.grades[id], place)
			if q.grades[id] > 0 {
				recalled++
			}
		}
		ideal := 0.0
		grades := make([]int, 0, len(q.grades))
		for _, grade := range q.grades {
			grades = append(grades, grade)
		}
		slices.SortFunc(grades, func(a, b int) int { return b - a })
		for place, grade := range grades {
			ideal += gainAt(grade, place)
		}
		sum.ndcg += gain / ideal
		sum.recall += float64(recalled) / float64(len(q.grades))
		sums[q.kind] = sum
		counts[q.kind]++
	}
	for kind, sum := range sums {
		sums[kind] = quality{sum.ndcg / counts[kind], sum.recall / counts[kind]}
	}
	return sums
}

// gainAt is what a passage of a grade adds to the discounted gain at a place from 0.
func gainAt(grade, place int) float64 {
	return (math.Exp2(float64(grade)) - 1) / math.Log2(float64(place)+2)
}

// searchPassages returns a search of x for measure.
func searchPassages(t *testing.T, x *index.Index, ids map[string]string) func(string, int) []string {
	return func(query string, n int) (found []string) {
		r, err := x.Search(t.Context(), index.Query{Text: query, Limit: n})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for _, result := range r.Results {
			found = append(found, ids[filepath.Base(result.Path)])
		}
		return found
	}
}

// TestMeaningQueriesAreOfTheirKind proves that no query of the kind "other" has a word of
// its answers, in any form, and that those of the kind "same" have nearly all.
func TestMeaningQueriesAreOfTheirKind(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	passages := judgedPassages(t)
	queries := judgedQueries(t, passages)
	counts := map[string]int{}
	for _, q := range queries {
		counts[q.kind]++
		words := x.ContentWords(q.query)
		for id, grade := range q.grades {
			if grade < 2 {
				continue
			}
			inPassage := x.ContentWords(passages[id])
			var common []string
			for _, word := range words {
				if slices.Contains(inPassage, word) {
					common = append(common, word)
				}
			}
			share := float64(len(common)) / float64(len(words))
			if q.kind == "other" && share > 0 || q.kind == "same" && share < 0.75 || q.kind == "mixed" && share > 0.75 {
				t.Errorf("%s: %s: %s has %v of %v", q.kind, q.query, id, common, words)
			}
		}
	}
	if len(passages) < 200 || len(queries) < 60 {
		t.Errorf("%d passages, %d queries", len(passages), len(queries))
	}
	for _, kind := range kinds {
		if counts[kind] < 20 {
			t.Errorf("%d queries of the kind %s", counts[kind], kind)
		}
	}
}

// rrf is the k of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009).
const rrf = 60

// TestMeaning measures searches of the judged passages: by words alone, by vectors alone, by
// both as the index does, and by both with reciprocal rank fusion. It fails if those of the
// index miss their aim.
func TestMeaning(t *testing.T) {
	t.Parallel()
	passages := judgedPassages(t)
	queries := judgedQueries(t, passages)
	model, err := static.Default()
	if err != nil {
		t.Fatal(err)
	}
	x := open(t, index.Options{})
	byWords := searchPassages(t, x, fillPassages(t, x, passages))
	x = open(t, index.Options{Embedder: model})
	byBoth := searchPassages(t, x, fillPassages(t, x, passages))
	embedAll(t, x)
	byVectors := searchVectors(t, model, passages)
	ways := []struct {
		name   string
		search func(query string, n int) []string
	}{
		{"words alone", byWords}, {"vectors alone", byVectors}, {"both", byBoth},
		{"both, by RRF", func(query string, _ int) []string {
			return fuseRanks(byWords(query, 100), byVectors(query, 100))
		}},
	}
	found := map[string]map[string]quality{}
	for _, way := range ways {
		found[way.name] = measure(queries, func(query string) []string { return way.search(query, 10) })
		line := ""
		for _, kind := range kinds {
			q := found[way.name][kind]
			line += fmt.Sprintf(" | %s %.3f %.3f", kind, q.ndcg, q.recall)
		}
		t.Logf("%s%s", way.name, line)
	}
	words, both := found["words alone"], found["both"]
	if more := both["other"].recall - words["other"].recall; more < 0.25 {
		t.Errorf("in other words: recall@10 is %.3f above that of words alone, want 0.25", more)
	}
	for _, kind := range []string{"same", "mixed"} {
		if less := words[kind].recall - both[kind].recall; less > 0.01 {
			t.Errorf("%s words: recall@10 is %.3f below that of words alone, want 0.01 at most", kind, less)
		}
	}
}

// searchVectors returns a search for the passages whose vectors are nearest to the query's.
func searchVectors(t *testing.T, model *static.Model, passages map[string]string) func(string, int) []string {
	ids := slices.Sorted(maps.Keys(passages))
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = passages[id]
	}
	embed := func(texts []string) [][]float32 {
		all, err := model.Embed(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i] = vectors.Unit(all[i])
		}
		return all
	}
	rows := embed(texts)
	return func(query string, n int) []string {
		asked := embed([]string{query})[0]
		order := make([]int, len(ids))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Compare(vectors.Dot(rows[b], asked), vectors.Dot(rows[a], asked))
		})
		var found []string
		for _, i := range order[:n] {
			found = append(found, ids[i])
		}
		return found
	}
}

// fuseRanks returns what two searches have found, by reciprocal rank fusion.
func fuseRanks(lists ...[]string) []string {
	sums := map[string]float64{}
	for _, list := range lists {
		for place, id := range list {
			sums[id] += 1 / float64(rrf+place+1)
		}
	}
	return slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
}
