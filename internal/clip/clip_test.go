package clip_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/clip"
)

func TestOnlyWhatIsOverTheLimitIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		cut  func(string) string
		most int
	}{
		"short": {clip.Short, 64},
		"long":  {clip.Long, 128},
	} {
		for _, length := range []int{0, 1, c.most - 1, c.most, c.most + 1, 10 * c.most} {
			text := strings.Repeat("a", length)
			if got := c.cut(text); got != text[:min(length, c.most)] {
				t.Errorf("%s: %d of %d bytes left", name, len(got), length)
			}
		}
	}
}
