package client_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// BenchmarkSearch and BenchmarkBareHTTP differ by what the client costs.
func BenchmarkSearch(b *testing.B) {
	c := newClient(b, stateDir(b), modeGood, client.Options{})
	mustAsk(b, c, "q")
	measure(b, func() { mustAsk(b, c, "q") })
}

// measure reports the median of the time that call takes.
func measure(b *testing.B, call func()) {
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		call()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}

func BenchmarkBareHTTP(b *testing.B) {
	dir := stateDir(b)
	mustAsk(b, newClient(b, dir, modeGood, client.Options{}), "q")
	record, err := discovery.Read(dir)
	if err != nil {
		b.Fatal(err)
	}
	measure(b, func() {
		body, _ := json.Marshal(api.SearchRequest{Query: "q"})
		resp, err := http.Post("http://"+record.Address+"/api/v1/search", "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		var found api.SearchResponse
		if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	})
	http.DefaultClient.CloseIdleConnections()
}
