package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mcp-sse/mcp-sse/docsearch/internal/printable"
)

type removeCommand struct {
	common `embed:""`
	Path   string `arg:"" help:"The folder, as docsearch status names it, or a path that leads there."`
}

// Run removes a folder from the index.
func (c *removeCommand) Run(ctx context.Context, p *program) error {
	path, err := absolute(c.Path)
	if err != nil {
		return err
	}
	daemon, err := c.client(p, slog.LevelWarn, false)
	if err != nil {
		return err
	}
	defer daemon.Close()
	if err := daemon.RemoveFolder(ctx, path); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s is not indexed any more.\n", printable.Text(path))
	return nil
}
