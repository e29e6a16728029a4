package life

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const page = "../../../../docs/design/life.md"

// section returns the lines of a page between a heading and the next one.
func section(t *testing.T, page, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	ssetest.Must(t, err)
	lines := strings.Split(string(text), "\n")
	begin := slices.Index(lines, heading)
	if begin < 0 {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	lines = lines[begin+1:]
	if end := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "#") }); end >= 0 {
		lines = lines[:end]
	}
	return lines
}

// rows returns the cells of the table in a section of a page, without its head.
func rows(t *testing.T, page, heading string, columns int) (all [][]string) {
	t.Helper()
	for _, line := range section(t, page, heading) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != columns {
			t.Fatalf("%s: %q has %d cells, want %d", page, line, len(cells), columns)
		}
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		all = append(all, cells)
	}
	if len(all) < 3 {
		t.Fatalf("%s: no table below %q", page, heading)
	}
	return all[2:]
}

// words returns the words that a cell lists.
func words(cell string) []string { return strings.Split(cell, ", ") }

// phasesOf returns the phases that a cell lists, or all but those.
func phasesOf(t *testing.T, cell string) (listed []Phase) {
	t.Helper()
	cell, but := strings.CutPrefix(cell, "all but ")
	if cell == "all" {
		return phases
	}
	for _, word := range words(cell) {
		if !slices.Contains(phases, Phase(word)) {
			t.Fatalf("%s: %q is no phase", page, word)
		}
		listed = append(listed, Phase(word))
	}
	if !but {
		return listed
	}
	return slices.DeleteFunc(slices.Clone(phases), func(p Phase) bool { return slices.Contains(listed, p) })
}

type pair struct {
	phase Phase
	event Event
}

// The page lists what follows from each event in each phase, and which cannot happen there.
func TestEveryPairHasAVerdict(t *testing.T) {
	seen := make(map[pair]bool)
	once := func(phase Phase, event string) pair {
		p := pair{phase, Event(event)}
		if !slices.Contains(events, p.event) {
			t.Fatalf("%s: %q is no event", page, event)
		}
		if seen[p] {
			t.Errorf("%s has %v twice", page, p)
		}
		seen[p] = true
		return p
	}
	for _, cells := range rows(t, page, "### Rows", 4) {
		for _, phase := range phasesOf(t, cells[0]) {
			for _, event := range words(cells[1]) {
				p := once(phase, event)
				var want []Action
				if cells[3] != "" {
					for _, action := range words(cells[3]) {
						want = append(want, Action(action))
					}
				}
				got, ok := findMove(p.phase, p.event)
				if got.phase == "" {
					got.phase = "="
				}
				if !ok || got.phase != Phase(cells[2]) || !slices.Equal(got.actions, want) {
					t.Errorf("%v: the table has %v, %v, the page %s, %v", p, ok, got, cells[2], want)
				}
			}
		}
	}
	for _, cells := range rows(t, page, "### What cannot happen", 3) {
		for _, phase := range phasesOf(t, cells[1]) {
			for _, event := range words(cells[0]) {
				if p := once(phase, event); p.isInTable() {
					t.Errorf("%v is in the table, and cannot happen by the page", p)
				}
			}
		}
	}
	for _, phase := range phases {
		for _, event := range events {
			if p := (pair{phase, event}); !seen[p] {
				t.Errorf("%s does not have %v", page, p)
			}
		}
	}
}

func (p pair) isInTable() bool {
	_, ok := findMove(p.phase, p.event)
	return ok
}

// An event that cannot happen changes nothing.
func TestNextRefusesWhatCannotHappen(t *testing.T) {
	before := State{Asleep, ToldLists, DeclaredOwn}
	after, actions, ok := Next(before, Up)
	if after != before || actions != nil || ok {
		t.Errorf("got %v, %v, %v, want nothing", after, actions, ok)
	}
}

func TestDiagramIsTheTable(t *testing.T) {
	text := strings.Join(section(t, page, "## The moves of a life"), "\n")
	_, diagram, _ := strings.Cut(text, "```mermaid\n")
	diagram, rest, _ := strings.Cut(diagram, "```\n")
	if strings.Contains(rest, "```mermaid") {
		t.Errorf("%s has a second diagram, which no test compares", page)
	}
	if want := Diagram(); diagram != want {
		t.Errorf("%s has\n%s\nwant\n%s", page, diagram, want)
	}
}

// The page beside the diagram says as which state each phase is shown.
func TestPhasesAreShownAsThePageSays(t *testing.T) {
	seen := make(map[Phase]string)
	for _, cells := range rows(t, page, "## The moves of a life", 2) {
		for _, word := range words(strings.ReplaceAll(cells[1], "`", "")) {
			seen[Phase(word)] = cells[0]
		}
	}
	want := make(map[Phase]string)
	for _, phase := range phases {
		want[phase] = phase.Shown().String()
	}
	if !maps.Equal(seen, want) {
		t.Errorf("%s shows %v, want %v", page, seen, want)
	}
}

// The page says what an event makes of what the client was told.
func TestToldIsAsThePageSays(t *testing.T) {
	changes := rows(t, page, "### What the client was told, after an event", 3)
	for _, cells := range changes {
		for _, event := range words(cells[0]) {
			for _, phase := range phasesOf(t, cells[1]) {
				if !(pair{phase, Event(event)}).isInTable() {
					t.Errorf("%s: %s cannot happen in %s", page, event, phase)
				}
			}
		}
	}
	for _, phase := range phases {
		for _, event := range events {
			if !(pair{phase, event}).isInTable() {
				continue
			}
			for _, told := range tolds {
				want := told
				for _, cells := range changes {
					if !slices.Contains(words(cells[0]), string(event)) || !slices.Contains(phasesOf(t, cells[1]), phase) {
						continue
					}
					for _, change := range words(cells[2]) {
						from, into, _ := strings.Cut(change, " → ")
						if from == string(told) || from == "any" {
							want = Told(into)
						}
					}
				}
				next, _, _ := Next(State{phase, told, DeclaredNothing}, event)
				if next.Told != want {
					t.Errorf("%v after %s: got %s, want %s", pair{phase, event}, told, next.Told, want)
				}
			}
		}
	}
}
