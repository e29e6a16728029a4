package main

import (
	"fmt"
	"log/slog"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/demo"
	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// composedOf returns the members and the options of a view over the gateways of its servers.
func composedOf(v *config.View, servers map[string]*gateway.Gateway, log *slog.Logger) ([]compose.Member,
	compose.Options) {
	members, o := v.Composed(func(server string) jsonrpc.Dialer { return servers[server] })
	o.Logger = log
	return members, o
}

// optionsOfView returns the options of the gateway in front of a view.
func optionsOfView(c *config.Config, v *config.View, common gateway.Options) gateway.Options {
	options := c.Gateway(v.Server, common)
	options.Title = v.Title
	var servers []*config.Server
	for _, m := range v.Members {
		servers = append(servers, m.Server)
	}
	forprogram.OptionsOf(&options).LocalOnly = c.LocalOnly(servers...)
	return options
}

// tryView returns an error if a view, or its gateway, cannot be made. It makes nothing that lasts.
func tryView(c *config.Config, v *config.View, trial gateway.Options) error {
	members, o := v.Composed(func(string) jsonrpc.Dialer { return demo.Server{} })
	view, err := compose.New(members, o)
	if err != nil {
		return fmt.Errorf("%s: %w", v.Place("name"), err)
	}
	if _, err := gateway.New(view, optionsOfView(c, v, trial)); err != nil {
		return c.Explain(v.Server, err)
	}
	return nil
}

// openView returns a view over the gateways of its servers, and the gateway in front of it.
func openView(c *config.Config, v *config.View, servers map[string]*gateway.Gateway, common gateway.Options) (
	*compose.View, *gateway.Gateway, error) {
	view, err := compose.New(composedOf(v, servers, common.Logger))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", v.Place("name"), err)
	}
	gw, err := gateway.New(view, optionsOfView(c, v, common))
	if err != nil {
		return nil, nil, c.Explain(v.Server, err)
	}
	return view, gw, nil
}

// replaceMembers gives a view the gateways of its servers. It does not fail for a view that tryView accepts.
func replaceMembers(v *config.View, view *compose.View, servers map[string]*gateway.Gateway, log *slog.Logger) error {
	if err := view.Replace(composedOf(v, servers, log)); err != nil {
		return fmt.Errorf("%s: %w", v.Place("name"), err)
	}
	return nil
}
