package bridge_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/gateway/internal/bridge"
)

// TestTableOfStatesIsTheCode compares the table in the comment of State with Next.
func TestTableOfStatesIsTheCode(t *testing.T) {
	source, err := os.ReadFile("state.go")
	if err != nil {
		t.Fatal(err)
	}
	var state bridge.State
	for line := range strings.Lines(string(source)) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "//\t| ") || strings.HasPrefix(line, "//\t| state") || len(cells) != 6 {
			continue
		}
		var next []string
		for _, to := range state.Next() {
			if name := strings.ReplaceAll(to.String(), "gave up", "gaveUp"); name != "over" {
				next = append(next, name)
			}
		}
		if got, want := strings.TrimSpace(cells[1]), strings.ReplaceAll(state.String(), "gave up", "gaveUp"); got != want {
			t.Errorf("row %d of the table is %s, want %s", state, got, want)
		}
		want := "nothing"
		if len(next) > 0 {
			want = strings.Join(next, ", ")
		}
		if got := strings.TrimSpace(cells[4]); got != want {
			t.Errorf("after %s the table has %q, the code %q", state, got, want)
		}
		state++
	}
	if state != 8 {
		t.Errorf("the table has %d rows, want 8", state)
	}
}
