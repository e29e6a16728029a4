package index_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

var batchBytes = flag.Int("batch", 16<<20, "bytes of text that the benchmarks give to one Update")

// goFiles returns the root of the toolchain's source tree and the paths of its files.
func goFiles(t testing.TB) (root string, paths []string) {
	t.Helper()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(strings.TrimSpace(string(goroot)), "src")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root, paths
}

// goSource returns the text files of the toolchain's source tree, about so many bytes.
func goSource(t testing.TB, most int) []index.Change {
	t.Helper()
	root, paths := goFiles(t)
	return readFiles(t, root, paths, most)
}

// readFiles returns those files that have text, about so many bytes.
func readFiles(t testing.TB, root string, paths []string, most int) (all []index.Change) {
	t.Helper()
	total := 0
	for _, path := range paths {
		if total > most {
			break
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 || !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
			continue
		}
		total += len(data)
		rel, _ := filepath.Rel(root, path)
		all = append(all, index.Change{
			Path:     filepath.ToSlash(rel),
			Stamp:    index.Stamp{Size: int64(len(data)), ModTime: time.Unix(1e9, 0), Hash: sha256.Sum256(data)},
			Document: &extract.Document{Type: "code", Text: string(data)},
		})
	}
	return all
}

// prose returns documents of n bytes of words whose frequencies follow Zipf's law.
func prose(count, n int) (all []index.Change) {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.07, 2, 60_000)
	vocabulary := make([]string, 60_001)
	for i := range vocabulary {
		var b strings.Builder
		for k := i + 1; k > 0; k /= 20 {
			b.WriteString(string("bcdfglmnprstvz"[k%14]) + string("aeiou"[k%5]))
		}
		vocabulary[i] = b.String()
	}
	for i := range count {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(vocabulary[zipf.Uint64()])
			switch r.IntN(60) {
			case 0:
				b.WriteString(".\n\n")
			case 1, 2, 3, 4, 5:
				b.WriteString(".\n")
			default:
				b.WriteString(" ")
			}
		}
		all = append(all, text(fmt.Sprintf("prose/%06d.txt", i), b.String()))
	}
	return all
}

// batches cuts changes as the daemon does.
func batches(all []index.Change) (cut [][]index.Change, bytes int64) {
	var batch []index.Change
	n := 0
	for _, c := range all {
		batch = append(batch, c)
		n += len(c.Document.Text)
		bytes += int64(len(c.Document.Text))
		if n >= *batchBytes {
			cut = append(cut, batch)
			batch, n = nil, 0
		}
	}
	if len(batch) > 0 {
		cut = append(cut, batch)
	}
	return cut, bytes
}

func fill(t testing.TB, x *index.Index, all []index.Change) {
	t.Helper()
	cut, _ := batches(all)
	for _, b := range cut {
		update(t, x, b...)
	}
}

// usedCPU returns the processor time of the process, in ns.
func usedCPU(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// reportCPU reports the processor time of an iteration, which other processes disturb less.
func reportCPU(b *testing.B) (done func()) {
	before := usedCPU(b)
	return func() { b.ReportMetric(float64(usedCPU(b)-before)/1e6/float64(b.N), "cpu-ms") }
}

// searches measures the searches for the texts that next returns.
func searches(b *testing.B, x *index.Index, next func(i int) string) {
	var times []time.Duration
	var cpu int64
	for b.Loop() {
		text := next(len(times))
		began, before := time.Now(), usedCPU(b)
		if _, err := x.Search(b.Context(), index.Query{Text: text}); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
		cpu += usedCPU(b) - before
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(cpu)/1e6/float64(b.N), "cpu-ms")
}

func BenchmarkUpdate(b *testing.B) {
	for name, all := range map[string][]index.Change{"go": goSource(b, 1<<30), "prose": prose(4000, 10_000)} {
		b.Run(name, func(b *testing.B) {
			cut, bytes := batches(all)
			b.SetBytes(bytes)
			b.ReportMetric(float64(len(all)), "documents")
			defer reportCPU(b)()
			for b.Loop() {
				x := open(b, index.Options{})
				for _, batch := range cut {
					update(b, x, batch...)
				}
				s, err := x.Stats(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(s.FileBytes)/float64(bytes), "file/text")
				x.Close()
			}
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	x := open(b, index.Options{})
	fill(b, x, goSource(b, 1<<30))
	var many []string
	for _, w := range strings.Fields(strings.ToLower(goSource(b, 200_000)[10].Document.Text)) {
		if !slices.Contains(many, w) && len(many) < 50 {
			many = append(many, w)
		}
	}
	for _, q := range []struct{ name, text string }{
		{"rare", "goroutine preemption"},
		{"one", "handshake"},
		{"sentence", "how do I set a read deadline on a connection"},
		{"common", "return error string"},
		{"stop", "the of and if is in to"},
		{"keyword", "func"},
		{"phrase", `"read deadline"`},
		{"common phrase", `"return nil, err"`},
		{"absent phrase", `"return if err nil func"`},
		{"50 words", strings.Join(many, " ")},
		{"nothing", "qqqqzzzz"},
	} {
		b.Run(q.name, func(b *testing.B) {
			searches(b, x, func(int) string { return q.text })
		})
		b.Run(q.name+" after a change", func(b *testing.B) {
			searches(b, x, func(i int) string {
				update(b, x, text("zz.txt", fmt.Sprint("some text ", i)))
				return q.text
			})
		})
	}
}

// BenchmarkSearchDifferent searches for one to eight words in sequence of the documents,
// other ones each time, from the start on.
func BenchmarkSearchDifferent(b *testing.B) {
	path := filepath.Join(b.TempDir(), "index.db")
	all := goSource(b, 1<<30)
	x := openAt(b, path, index.Options{})
	fill(b, x, all)
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	x = openAt(b, path, index.Options{})
	r := rand.New(rand.NewPCG(7, 7))
	searches(b, x, func(int) string {
		for {
			fields := strings.Fields(all[r.IntN(len(all))].Document.Text)
			at := r.IntN(max(1, len(fields)-10))
			text := strings.Join(fields[at:min(len(fields), at+1+r.IntN(8))], " ")
			if text = strings.ReplaceAll(text, `"`, " "); len(index.Terms(text)) > 0 {
				return text
			}
		}
	})
}

func BenchmarkOpenAndSearch(b *testing.B) {
	path := filepath.Join(b.TempDir(), "index.db")
	x, err := index.Open(b.Context(), path, index.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := x.AddFolder(b.Context(), folder); err != nil {
		b.Fatal(err)
	}
	fill(b, x, goSource(b, 1<<30))
	x.Close()
	for b.Loop() {
		x, err := index.Open(b.Context(), path, index.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if got := found(b, x, "handshake"); got == "[]" {
			b.Fatal("nothing found")
		}
		x.Close()
	}
}

// BenchmarkGigabyte indexes 1 GB of prose, made as it goes, and reports the largest
// resident set. Run it alone: -bench Gigabyte -benchtime 1x.
func BenchmarkGigabyte(b *testing.B) {
	defer reportCPU(b)()
	for b.Loop() {
		x := open(b, index.Options{})
		some := prose(1600, 10_000)
		var n int64
		for round := 0; n < 1e9; round++ {
			batch := slices.Clone(some)
			for i := range batch {
				batch[i].Path = fmt.Sprintf("%d/%s", round, batch[i].Path)
				n += int64(len(batch[i].Document.Text))
			}
			update(b, x, batch...)
		}
		b.SetBytes(n)
		x.Close()
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(kib/1024, "peak-MiB")
}
