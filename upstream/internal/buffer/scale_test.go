package buffer

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/scaletest"
)

// However the bytes of a server come, the time for them grows with their number.
func TestLinesTakeTimeInProportion(t *testing.T) {
	for name, text := range map[string]string{"empty lines": "\n", "short lines": "ab\n", "one line": "x", "lines over the limit": strings.Repeat("x", 300) + "\n"} {
		for size, step := range map[string]int{"byte by byte": 1, "in pieces": 100, "at once": 1 << 30} {
			for limit, most := range map[string]int{"low": 200, "high": 1 << 30} {
				t.Run(name+"/"+size+"/limit "+limit, func(t *testing.T) {
					scaletest.Linear(t, 20_000, func(n int) func() {
						data := []byte(strings.Repeat(text, n/len(text)))
						return func() {
							s := NewSplitter(most, nil)
							for rest := data; len(rest) > 0; {
								piece := rest[:min(step, len(rest))]
								rest = rest[len(piece):]
								for len(piece) > 0 {
									_, piece, _ = s.Next(piece)
								}
							}
							s.Last()
						}
					})
				})
			}
		}
	}
}

func TestQueuesTakeTimeInProportion(t *testing.T) {
	for name, act := range map[string]func(q *Queue, n int){
		"filled and emptied": func(q *Queue, n int) {
			for range n {
				_ = q.Offer([]byte("{}")) // it has room
			}
			for range n {
				_, _ = q.Pop() // it has messages
			}
		},
		"never empty": func(q *Queue, n int) {
			for range n {
				_ = q.Offer([]byte("{}"))
				_ = q.Offer([]byte("{}"))
				_, _ = q.Pop()
			}
		},
		"full": func(q *Queue, n int) {
			_ = q.Offer(make([]byte, 1<<30-1)) // more than fits beside others
			for range n {
				_ = q.Offer([]byte("{}"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			scaletest.Linear(t, 2000, func(n int) func() {
				return func() { act(NewQueue(1<<30, nil), n) }
			})
		})
	}
}
