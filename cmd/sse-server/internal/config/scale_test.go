package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/scaletest"
)

// The time to load a file grows with its length alone, whether it is taken or not.
func TestFilesTakeTimeInProportion(t *testing.T) {
	for name, content := range map[string]func(n int) string{
		"options":         func(n int) string { return lines(n, func(i int) string { return "gate-queue: 9" }) },
		"unknown options": func(n int) string { return lines(n, func(i int) string { return fmt.Sprintf("gate-kueue-%d: 9", i) }) },
		"servers": func(n int) string {
			return "servers:\n" + lines(n, func(i int) string { return fmt.Sprintf("  s%d:\n    demo: true", i) })
		},
		"a list": func(n int) string {
			return "allowed-hosts:\n" + lines(n, func(i int) string { return fmt.Sprintf("  - h%d.example", i) })
		},
		"a mapping": func(n int) string {
			return "command: [x]\nenv:\n" + lines(n, func(i int) string { return fmt.Sprintf("  V%d: x", i) })
		},
		"references":      func(n int) string { return "url: https://a.example/" + strings.Repeat("${A}", n) },
		"open references": func(n int) string { return "url: https://a.example/" + strings.Repeat("${", n) },
		"comments":        func(n int) string { return lines(n, func(int) string { return "# nothing" }) },
		"a long value":    func(n int) string { return "prefix: /" + strings.Repeat("a/", 5*n) },
		"a long key":      func(n int) string { return strings.Repeat("gate", 2*n) + ": 9" },
		"a quoted value":  func(n int) string { return `prefix: "` + strings.Repeat(`\x61`, 2*n) + `"` },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			scaletest.Linear(t, 200, func(n int) func() {
				file := filepath.Join(dir, fmt.Sprint(n))
				if err := os.WriteFile(file, []byte(content(n)), 0o600); err != nil {
					t.Fatal(err)
				}
				return func() { loadWith(t, map[string]string{"A": "b"}, "--config", file) }
			})
		})
	}
}

func lines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}
