package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/metrics"
)

func BenchmarkRequestDone(b *testing.B) {
	for _, bench := range []struct{ name, method, errorType, id string }{
		{"ok", "tools/call", "", ""},
		{"exemplar", "tools/call", "", "5f1c9a2e"},
		{"error", "tools/call", "-32602", "5f1c9a2e"},
		{"unknown", "x/y", "-1", "5f1c9a2e"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			m := metrics.New(prometheus.NewRegistry())
			b.ReportAllocs()
			for b.Loop() {
				m.RequestDone(bench.method, bench.errorType, 3*time.Millisecond, bench.id)
			}
		})
	}
}

func BenchmarkMessageIn(b *testing.B) {
	m := metrics.New(prometheus.NewRegistry())
	b.ReportAllocs()
	for b.Loop() {
		m.MessageIn(200)
	}
}

func BenchmarkGather(b *testing.B) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	for _, tt := range moves {
		tt.do(m)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
