package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// diagnose prints what a client meets at the URL, step by step, and returns the exit code.
func (m *Main) diagnose(c *config.Config) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	remote := c.Remote()
	var steps []diagnosis.Step
	works := diagnosis.Run(ctx, diagnosis.Options{
		URL: remote.Address, Header: remote.Header, Origin: c.Check.Origin, Wait: time.Duration(c.Check.Wait), Patience: m.Silence,
	}, func(s diagnosis.Step) {
		steps = append(steps, s)
		if !c.Check.JSON {
			m.tellStep(s)
		}
	})
	if c.Check.JSON {
		data, _ := json.MarshalIndent(map[string]any{"url": remote.Place(), "works": works, "steps": steps}, "", "  ") // never fails
		fmt.Fprintf(m.Stdout, "%s\n", data)
	} else if works {
		fmt.Fprintf(m.Stdout, "A client can use %s.\n", remote.Place())
	}
	if works {
		return exitOK
	}
	return exitFailure
}

// marks are those of the results of a step.
var marks = map[diagnosis.Result]string{diagnosis.OK: "✓", diagnosis.Failed: "✗", diagnosis.Missing: "–"}

// tellStep prints one step.
func (m *Main) tellStep(s diagnosis.Step) {
	detail := s.Detail
	if s.Result == diagnosis.Missing {
		detail = "not served: " + detail
	}
	fmt.Fprintf(m.Stdout, "%s %-33s %8.1f ms  %s\n", marks[s.Result], visible(s.Name), s.Milliseconds, visible(detail))
	if s.Remedy != "" {
		fmt.Fprintf(m.Stdout, "  what to do: %s\n", visible(s.Remedy))
	}
}
