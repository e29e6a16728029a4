package main

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/mcpserver"
)

type mcpCommand struct {
	common  `embed:""`
	logging `embed:""`
	Folder  []string `short:"f" help:"A folder to index and search. May be repeated. Without it, all folders that the daemon has are searched." sep:"none" placeholder:"PATH"`
}

// Run serves MCP until stdin ends or ctx does.
func (c *mcpCommand) Run(ctx context.Context, p *program) error {
	folders, err := resolve(c.Folder, true)
	if err != nil {
		return err
	}
	daemon, err := c.client(p, c.LogLevel, false)
	if err != nil {
		return err
	}
	defer daemon.Close()
	server, err := mcpserver.New(mcpserver.Options{Client: daemon, Version: version(), Folders: folders,
		Model: c.wantedModel(), Logger: newLogger(p.stderr, c.LogLevel)})
	if err != nil {
		return err
	}
	err = server.Run(ctx, &mcp.StdioTransport{})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // a signal ended it
	}
	return err
}
