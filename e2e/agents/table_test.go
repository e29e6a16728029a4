//go:build agents

package agents

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// page, if set, gets the table of what the agents do.
var page = flag.String("page", "", "write the table into this page, between its marks")

// table is what the agents do at each point.
var table = points{cells: map[string]map[string]string{}}

// points are cells by agent and column. They are safe for concurrent use.
type points struct {
	mu    sync.Mutex
	cells map[string]map[string]string // guarded by mu
}

func (p *points) set(agent, column, words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cells[agent] == nil {
		p.cells[agent] = map[string]string{}
	}
	p.cells[agent][column] = words
}

// columns are the points, in the order of the tables: each row of them is a table.
var columns = [][]string{
	{"/mcp", "/sse", "stdio", "token", "boot 0.3s", "boot 2.5s", "boot 8s", "boot 20s"},
	{
		"again 2.5s", "again 8s", "again 20s", "cold 2.5s", "cold 8s", "cold 20s",
		"stdio 2.5s", "stdio 8s", "stdio 20s", "stdio again 2.5s", "stdio again 8s", "stdio again 20s",
		"second client", "new folder",
	},
	{"view cold", "view 8s", "view again 8s", "init"},
	{"restart /mcp", "restart /sse", "server dies", "long call", "with progress", "new tool", "elicitation"},
	{"login", "login ended"},
	{"80 tools", "64 characters", "$ref, anyOf", "1 MiB", "image", "isError", "structured"},
}

const (
	tableBegin = "<!-- written by make agents -->\n"
	tableEnd   = "<!-- end of what make agents writes -->\n"
)

// write puts the tables into the page. Each agent must have each point.
func (p *points) write(file string, versions map[string]string, day time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(data), tableBegin)
	_, after, ok := strings.Cut(rest, tableEnd)
	if !found || !ok {
		return fmt.Errorf("%s has no marks for the table", file)
	}
	var s strings.Builder
	for i, group := range columns {
		head := []string{"agent"}
		if i == 0 {
			head = append(head, "version", "date")
		}
		head = append(head, group...)
		fmt.Fprintf(&s, "\n| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
		for _, a := range agents {
			row := []string{a.name}
			if i == 0 {
				row = append(row, versions[a.name], day.Format(time.DateOnly))
			}
			for _, column := range group {
				words, ok := p.cells[a.name][column]
				if !ok {
					return fmt.Errorf("%s has no %q, only %q: run all tests for the table", a.name, column, slices.Sorted(maps.Keys(p.cells[a.name])))
				}
				row = append(row, words)
			}
			fmt.Fprintf(&s, "| %s |\n", strings.Join(row, " | "))
		}
	}
	return os.WriteFile(file, []byte(before+tableBegin+s.String()+"\n"+tableEnd+after), 0o644)
}

// writeTable writes the tables of this run.
func writeTable(file string) error {
	versions := map[string]string{}
	for _, a := range agents {
		var err error
		if versions[a.name], err = version(a.npm); err != nil {
			return err
		}
	}
	return table.write(file, versions, time.Now())
}
