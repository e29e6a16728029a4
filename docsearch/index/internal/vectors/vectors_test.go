package vectors_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/vectors"
)

// BenchmarkNearest searches random vectors for those near to one of them.
func BenchmarkNearest(b *testing.B) {
	const rows, dimensions = 50_000, 768
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
	for b.Loop() {
		f.Nearest(query, 200)
	}
}
