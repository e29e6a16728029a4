package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/printable"
)

type statusCommand struct {
	common `embed:""`
	JSON   bool `name:"json" help:"Print the answers of the daemon."`
}

// status is what status --json prints.
type status struct {
	Running bool            `json:"running"`
	Address string          `json:"address,omitempty"`
	Server  *api.ServerInfo `json:"server,omitempty"`
	Folders []api.Folder    `json:"folders,omitempty"`
}

// Run asks the daemon, and starts none.
func (c *statusCommand) Run(ctx context.Context, p *program) error {
	dir, err := c.stateDir(p)
	if err != nil {
		return err
	}
	held, err := discovery.Held(dir)
	if err != nil {
		return err
	}
	s := status{Running: held}
	if held {
		if err := s.ask(ctx, c, p); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(p.stdout).Encode(s)
	}
	s.print(p.stdout, dir)
	return nil
}

func (s *status) ask(ctx context.Context, c *statusCommand, p *program) error {
	daemon, err := c.client(p, slog.LevelWarn, true)
	if err != nil {
		return err
	}
	defer daemon.Close()
	s.Server, err = daemon.Info(ctx)
	if err != nil {
		return err
	}
	list, err := daemon.Folders(ctx)
	if err != nil {
		return err
	}
	s.Folders = list.Folders
	dir, err := c.stateDir(p)
	if err != nil {
		return err
	}
	record, err := discovery.Read(dir)
	s.Address = record.Address
	return err
}

// print prints the status for people.
func (s status) print(w io.Writer, dir string) {
	if !s.Running {
		fmt.Fprintf(w, "No daemon runs for %s. A search starts one.\n", dir)
		return
	}
	fmt.Fprintf(w, "The daemon runs at http://%s, pid %d, version %s: %s, %d %%\n",
		s.Address, s.Server.PID, s.Server.Version, s.Server.Status, s.Server.Percent)
	fmt.Fprintf(w, "Index: %d documents, %s of text, %s on disk\n", s.Server.Documents,
		humanize.IBytes(uint64(s.Server.TextBytes)), humanize.IBytes(uint64(s.Server.IndexBytes)))
	fmt.Fprintf(w, "Searches are %s\n", printable.Text(s.Server.Ranking()))
	if e := s.Server.Embeddings; e != nil {
		fmt.Fprintf(w, "Vectors: %d of %d passages\n", e.Chunks, s.Server.Chunks)
	}
	for _, warning := range s.Server.Warnings {
		fmt.Fprintf(w, "Warning: %s\n", printable.Text(warning))
	}
	for _, f := range s.Folders {
		fmt.Fprintf(w, "\n%s\n  %s, %d %%, %d documents, %s of text\n", printable.Text(f.Path), f.Status, f.Percent,
			f.Documents, humanize.IBytes(uint64(f.TextBytes)))
		var skipped []string
		for _, reason := range slices.Sorted(maps.Keys(f.Skipped)) {
			skipped = append(skipped, fmt.Sprintf("%d %s", f.Skipped[reason], strings.ReplaceAll(reason, "_", " ")))
		}
		if len(skipped) > 0 {
			fmt.Fprintf(w, "  not indexed: %s\n", strings.Join(skipped, ", "))
		}
	}
}
