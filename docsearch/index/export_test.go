package index

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
)

// WithQueryTimeout returns o with a bound on how long a query waits for its vector.
func WithQueryTimeout(o Options, d time.Duration) Options {
	o.queryTimeout = d
	return o
}

// Cut returns the passages of a document: the text of each, and where its own part starts.
func Cut(d *extract.Document) (texts []string, starts []int) {
	for _, p := range cut(d) {
		texts, starts = append(texts, p.text), append(starts, p.start)
	}
	return texts, starts
}

// Scan returns a search of n random vectors for the nearest.
func Scan(path string, n, dimensions int) (search func(), err error) {
	v := &vectors{path: path, model: "random"}
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []float32 {
		one := make([]float32, dimensions)
		for i := range one {
			one[i] = r.Float32() - 0.5
		}
		return one
	}
	for row := 0; row < n; row += 1000 {
		keys, all := make([]hash, 1000), make([][]float32, 1000)
		for i := range keys {
			keys[i], all[i] = hashOf(fmt.Sprint(row+i)), unit(random())
		}
		if err := v.add(keys, all, 0); err != nil {
			return nil, err
		}
	}
	query := unit(random())
	return func() { v.nearest(query, maxNear) }, nil
}
