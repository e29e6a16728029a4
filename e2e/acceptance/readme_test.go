package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Each test is in the table of README.md, and each of the table is here: none goes unnoticed.
func TestTheTableOfRulesNamesAllTests(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	ssetest.Must(t, err)
	files, err := filepath.Glob("*_test.go")
	ssetest.Must(t, err)
	var code []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		ssetest.Must(t, err)
		code = append(code, text...)
	}
	ssetest.WantLines(t, names(`(?m)^\|.*(\bTest\w+)`, readme), names(`(?m)^func (Test\w+)\(t `, code))
}

func names(pattern string, text []byte) (all []string) {
	for _, found := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		if name := string(found[1]); name != "TestMain" && name != "TestTheTableOfRulesNamesAllTests" {
			all = append(all, name)
		}
	}
	return slices.Sorted(slices.Values(all))
}
