package docstest_test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	logCall = regexp.MustCompile(`\.(Debug|Info|Warn|Error|Log)\((?:context\.Background\(\), level, )?"([^"]+)"`)
	quoted  = regexp.MustCompile("`([^`]+)`")
)

// TestLogLinesAreTheCode compares the table of log lines with the messages that
// the code logs, both ways.
func TestLogLinesAreTheCode(t *testing.T) {
	code := make(map[string]string) // level by message
	text := source(t, programFolders(t)...)
	for _, m := range logCall.FindAllStringSubmatch(text, -1) {
		code[m[2]] += " " + strings.ToLower(m[1])
	}
	if len(code) < 20 {
		t.Fatalf("found %d log lines in the code: correct this test's pattern", len(code))
	}
	docs := make(map[string]bool)
	for _, row := range cells(t, "docs/operations.md", "## Logs")[1:] {
		for _, message := range quoted.FindAllStringSubmatch(row[1], -1) {
			docs[message[1]] = true
			levels, ok := code[message[1]]
			if !ok {
				t.Errorf("docs/operations.md has the log line %q, which is not in the code", message[1])
			}
			for level := range strings.FieldsSeq(levels) {
				if level != "log" && !strings.Contains(row[0], level) {
					t.Errorf("docs/operations.md gives %q the level %q, the code %s", message[1], row[0], level)
				}
			}
		}
	}
	for message := range code {
		if !docs[message] {
			t.Errorf("the log line %q is not in docs/operations.md", message)
		}
	}
}
