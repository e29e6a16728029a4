package compose

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The diagram of the design has each change of the state of a link, and no other one.
func TestDiagramOfLinks(t *testing.T) {
	page, err := os.ReadFile("../docs/design/views.md")
	ssetest.Must(t, err)
	_, diagram, _ := strings.Cut(string(page), "stateDiagram-v2\n    [*] --> unopened\n")
	diagram, _, _ = strings.Cut(diagram, "```")
	drawn := map[string]bool{}
	for _, edge := range regexp.MustCompile(`(?m)^    (\w+) --> (\w+): (.*)$`).FindAllStringSubmatch(diagram, -1) {
		for event := range strings.SplitSeq(edge[3], ", ") {
			drawn[edge[1]+" "+event+" "+edge[2]] = true
		}
	}
	coded := map[string]bool{}
	for from, moves := range linkMoves {
		for event, move := range moves {
			if linkState(from) != move.next {
				coded[fmt.Sprint(linkState(from), " ", event, " ", move.next)] = true
			}
		}
	}
	ssetest.WantLines(t, slices.Sorted(maps.Keys(coded)), slices.Sorted(maps.Keys(drawn)))
}

// Whatever happens in whatever state, a link is not lost: nothing follows gone, and each other state leads there when
// the member is removed, at once or as soon as it is quiet.
func TestLinkStates(t *testing.T) {
	for state := range linkStates {
		for event := range linkEvents {
			move, ok := state.after(event)
			switch {
			case !ok:
				ssetest.Want(t, fmt.Sprint(state, " ", event), move, linkMove{})
			case state == gone:
				t.Errorf("%v follows %v after gone", move, event)
			case move.next == gone != (move.do == end):
				t.Errorf("%v in %v leads to %v", event, state, move)
			}
		}
		if state == gone {
			continue
		}
		move, ok := state.after(remove)
		if state == leaving {
			move, ok = state.after(quiet)
		}
		if !ok || move.next != gone && move.next != leaving {
			t.Errorf("a link in %v cannot be removed", state)
		}
	}
}
