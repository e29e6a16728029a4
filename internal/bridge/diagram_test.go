package bridge_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/mcp-sse/mcp-sse/internal/bridge"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// arrow leads from one state of a start to another. The empty state is where starts begin and end.
type arrow struct{ from, to StartState }

var (
	startStates = []StartState{
		Dialing, DueSynthetic, DueOwn, Joining, AwaitingOwn, InitializingSynthetic, InitializingOwn, Superseded, Abandoned,
		Started, Failed, Again, Gone,
	}
	startEvents = []StartEvent{
		Dialed, OwnInitialize, MoreDeclared, Needed, DelayOver, Late, ListsTold,
		ServerReplaced, ConnectionClosed, Up, Down,
	}
	// firstStates are those in which a start can begin.
	firstStates = []StartState{Dialing, DueOwn, DueSynthetic, Joining}
)

var drawn = regexp.MustCompile(`^    (\S+) --> ([^\s:]+)(?:: .+)?$`)

// drawnArrows returns the arrows of the diagram of a start in docs/design/life.md.
func drawnArrows(t *testing.T) (arrows []arrow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/design/life.md")
	ssetest.Must(t, err)
	_, section, _ := strings.Cut(string(text), "\n## The moves of a start\n")
	_, diagram, _ := strings.Cut(section, "```mermaid\nstateDiagram-v2\n")
	diagram, _, _ = strings.Cut(diagram, "```")
	for line := range strings.Lines(diagram) {
		found := drawn.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil {
			t.Fatalf("the diagram has %q, want an arrow", line)
		}
		arrows = append(arrows, arrow{drawnState(t, found[1]), drawnState(t, found[2])})
	}
	if len(arrows) == 0 {
		t.Fatal("life.md has no diagram of a start")
	}
	return arrows
}

// drawnState returns the state with the name that it has in the diagram, DueOwn for due-own.
func drawnState(t *testing.T, name string) StartState {
	t.Helper()
	if name == "[*]" {
		return ""
	}
	for _, state := range startStates {
		if strings.EqualFold(strings.ReplaceAll(string(state), "-", ""), name) {
			return state
		}
	}
	t.Fatalf("the diagram has %q, which is no state", name)
	return ""
}

// The diagram has the arrows of the table and no other. Of those that start in every state it has what the
// page says.
func TestDiagramOfAStartIsTheTable(t *testing.T) {
	arrows := drawnArrows(t)
	must, may := make(map[arrow]bool), make(map[arrow]bool)
	for _, state := range firstStates {
		must[arrow{"", state}] = true
	}
	for _, from := range startStates {
		if from.Over() && from != Gone {
			must[arrow{from, ""}] = true
		}
		for _, event := range startEvents {
			to, _ := Next(from, event)
			underWay := !from.Over() && from != Superseded && from != Abandoned
			switch {
			case to == from:
			case underWay && (event == ServerReplaced || event == ConnectionClosed): // from every state, not drawn
			case to == Abandoned, from == Abandoned: // a closed connection, not drawn
			case underWay && (event == Up || event == Down): // from every state, drawn where it usually happens
				may[arrow{from, to}] = true
			default:
				must[arrow{from, to}] = true
			}
		}
	}
	for i, a := range arrows {
		if !must[a] && !may[a] {
			t.Errorf("the diagram has %v, the table has not", a)
		}
		if slices.Contains(arrows[:i], a) {
			t.Errorf("the diagram has %v twice", a)
		}
	}
	for a := range must {
		if !slices.Contains(arrows, a) {
			t.Errorf("the table has %v, the diagram has not", a)
		}
	}
	for _, end := range []StartState{Started, Failed} {
		if !slices.ContainsFunc(arrows, func(a arrow) bool { return a.to == end }) {
			t.Errorf("no arrow of the diagram leads to %s", end)
		}
	}
}
