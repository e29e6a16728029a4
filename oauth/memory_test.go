package oauth

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Valid returns how many tokens s remembers as valid.
func Valid(s *Resource) int { return len(s.issuer.valid.newer) + len(s.issuer.valid.older) }

// What was checked longest ago is forgotten first: when there is too much of it, and after minutes.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory{max: 10}
		check := func(last byte, want int) {
			t.Helper()
			known := 0
			for n := range last + 1 {
				if m.get(hash{n}) != nil {
					known++
				} else if last-n < byte(min(want, 11)) {
					t.Errorf("after %d: %d is forgotten", last, n)
				}
			}
			ssetest.Want(t, fmt.Sprintf("known after %d", last), known, want)
		}
		for n := range byte(100) {
			m.put(hash{n}, &token{})
			check(n, min(int(n)+1, 11+int(n)%10))
		}
		time.Sleep(rememberTime + 1)
		m.put(hash{100}, &token{})
		check(100, 11)
		time.Sleep(rememberTime + 1)
		m.put(hash{101}, &token{})
		check(101, 2)
	})
}
