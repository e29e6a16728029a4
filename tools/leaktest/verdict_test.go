package main

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

func TestHeadline(t *testing.T) {
	faults := func(kinds ...load.Fault) (f load.Faults) {
		for _, kind := range kinds {
			f[kind]++
		}
		return f
	}
	for name, c := range map[string]struct {
		report load.Report
		want   string
	}{
		"Clean":      {load.Report{Answered: 1}, "CLEAN: nothing crossed, nothing was lost"},
		"Refused":    {load.Report{Answered: 1, Refused: 1}, "UNPROVEN: nothing crossed, but"},
		"NoAnswer":   {load.Report{}, "UNPROVEN: "},
		"Crossed":    {load.Report{Answered: 1, Faults: faults(load.Crossed, load.Lost)}, "FAULTY: clients got what belongs to others"},
		"NotTheirs":  {load.Report{Answered: 1, Faults: faults(load.Unknown, load.Lost)}, "FAULTY: clients got what is not theirs"},
		"Lost":       {load.Report{Answered: 1, Faults: faults(load.Lost)}, "FAULTY: nothing crossed, but"},
		"LostAndOne": {load.Report{Answered: 1, Refused: 1, Faults: faults(load.Duplicated)}, "FAULTY: nothing crossed, but"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := headline(&c.report); !strings.HasPrefix(got, c.want) {
				t.Errorf("headline = %q, want %q", got, c.want)
			}
		})
	}
}

func TestEachVerdictHasANameAndACode(t *testing.T) {
	for v, code := range map[load.Verdict]int{load.Clean: 0, load.Faulty: 1, load.Unproven: 2} {
		if got := verdicts[v]; got.name == "" || got.code != code {
			t.Errorf("verdict %d = %+v, want the code %d", v, got, code)
		}
	}
}

func TestRefusalIsShown(t *testing.T) {
	if got := text(&load.Report{Refused: 1, Refusal: "429 slow down"}); !strings.Contains(got, "refusal   429 slow down\n") {
		t.Errorf("text:\n%s", got)
	}
}
