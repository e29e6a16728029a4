package index_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/static"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/vectors"
)

// corpus is how much of Go's source the benchmarks index; 0 is all, some 110 MB.
var corpus = flag.Int("corpus", 10<<20, "bytes of Go's source that the benchmarks index")

// goSource returns files of Go's source in batches of some megabytes.
func goSource(b *testing.B, yield func(batch []index.Change, bytes int)) {
	b.Helper()
	var batch []index.Change
	all, size := 0, 0
	root := filepath.Join(goRoot(), "src")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || *corpus > 0 && all >= *corpus {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(data) || slices.Contains(data, 0) || len(data) == 0 {
			return err
		}
		name, _ := filepath.Rel(root, path)
		batch = append(batch, index.Change{Path: filepath.ToSlash(name), Stamp: index.Stamp{Size: int64(len(data))},
			Document: &extract.Document{Type: "code", Text: string(data)}})
		all, size = all+len(data), size+len(data)
		if size > 8<<20 {
			yield(batch, size)
			batch, size = nil, 0
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if len(batch) > 0 {
		yield(batch, size)
	}
}

func BenchmarkUpdate(b *testing.B) {
	for b.Loop() {
		x := open(b, index.Options{})
		goSource(b, func(batch []index.Change, bytes int) {
			update(b, x, batch...)
			b.SetBytes(int64(bytes))
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	x := open(b, index.Options{})
	goSource(b, func(batch []index.Change, _ int) { update(b, x, batch...) })
	for name, text := range map[string]string{
		"word": "goroutine", "rare": "hysteresis badger", "common": "return error value", "sentence": "how do I close a connection that is idle",
		"phrase": `"file descriptor"`, "common phrase": `"if err"`, "prefix": "conn*", "only stop words": "is it for this", "identifier": "ReadDirFS",
	} {
		b.Run(name, func(b *testing.B) {
			var all []time.Duration
			for b.Loop() {
				began := time.Now()
				if _, err := x.Search(b.Context(), index.Query{Text: text}); err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(began))
			}
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkMeaning measures searches by words and by meaning, with the model in the program, among
// some numbers of passages of Go's source: the queries are those of the judged set. It reports, too,
// what indexing takes for 1,000 passages, and the size of the index and of the heap after it.
func BenchmarkMeaning(b *testing.B) {
	model, err := static.Default()
	if err != nil {
		b.Fatal(err)
	}
	var queries []string
	for line := range strings.Lines(readFile(b, "testdata/judged.txt")) {
		if query, _, ok := strings.Cut(line, " => "); ok && !strings.HasPrefix(line, "#") {
			queries = append(queries, query)
		}
	}
	for _, passages := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(passages), func(b *testing.B) { benchmarkMeaning(b, model, queries, passages) })
	}
}

func benchmarkMeaning(b *testing.B, model index.Embedder, queries []string, passages int) {
	batches := goPassages(b, passages)
	x := open(b, index.Options{Embedder: model})
	began := time.Now()
	for _, batch := range batches {
		update(b, x, batch...)
	}
	byWords := time.Since(began)
	began = time.Now()
	if err := x.EmbedMissing(b.Context()); err != nil {
		b.Fatal(err)
	}
	byMeaning := time.Since(began)
	size, _, err := x.Size()
	if err != nil {
		b.Fatal(err)
	}
	clear(batches)
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var took []time.Duration
	for b.Loop() {
		for _, query := range queries {
			began := time.Now()
			if _, err := x.Search(b.Context(), index.Query{Text: query}); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op") // of all queries
	b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
	b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(milliseconds(byWords)*1000/float64(passages), "words-ms/1000")
	b.ReportMetric(milliseconds(byMeaning)*1000/float64(passages), "vectors-ms/1000")
	b.ReportMetric(float64(size)/1e6, "index-MB")
	b.ReportMetric(float64(memory.HeapAlloc)/1e6, "heap-MB")
}

// goPassages returns files of Go's source, of its tests and its API if that is too few, that have some number of passages,
// in batches.
func goPassages(b *testing.B, passages int) (batches [][]index.Change) {
	b.Helper()
	enough := errors.New("there are enough")
	var all []index.Change
	left, root := passages, goRoot()
	read := func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(data) || slices.Contains(data, 0) || len(data) == 0 {
			return err
		}
		name, _ := filepath.Rel(root, path)
		d := &extract.Document{Type: "code", Text: string(data)}
		all = append(all, index.Change{Path: filepath.ToSlash(name), Stamp: index.Stamp{Size: int64(len(data))}, Document: d})
		texts, _ := index.Cut(d)
		left -= len(texts)
		if left <= 0 {
			return enough
		}
		return nil
	}
	var err error
	for _, dir := range []string{"src", "test", "api"} {
		if err == nil {
			err = filepath.WalkDir(filepath.Join(root, dir), read)
		}
	}
	if !errors.Is(err, enough) {
		b.Skipf("%d passages of %d are missing: %v", left, passages, err)
	}
	return slices.Collect(slices.Chunk(all, 200))
}

// BenchmarkNearest searches random vectors for those near to one of them: 100 numbers, as those
// of the model in the binary have, 256, as those of potion, and 768, as those of many endpoints.
func BenchmarkNearest(b *testing.B) {
	for _, dimensions := range []int{100, 256, 768} {
		for _, rows := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%d/%d", dimensions, rows), func(b *testing.B) { benchmarkNearest(b, rows, dimensions) })
		}
	}
}

func benchmarkNearest(b *testing.B, rows, dimensions int) {
	var f vectors.File
	f.Open(filepath.Join(b.TempDir(), "vectors"), "random")
	defer f.Close()
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []float32 {
		one := make([]float32, dimensions)
		for i := range one {
			one[i] = r.Float32() - 0.5
		}
		return vectors.Unit(one)
	}
	keys, all := make([]vectors.Key, rows), make([][]float32, rows)
	for row := range rows {
		keys[row], all[row] = vectors.KeyOf(fmt.Sprint(row)), random()
	}
	if err := f.Add(keys, all, 0); err != nil {
		b.Fatal(err)
	}
	query := random()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		f.Nearest(query, 200)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
