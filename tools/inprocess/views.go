package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// remembering returns options of a gateway over a child. With memory, the members of a view whose tools nobody calls
// have no process.
func remembering() gateway.Options {
	o := options
	o.Remember = &gateway.Remember{}
	return o
}

// selecting returns o with a selection that leaves nothing out.
func selecting(o gateway.Options) gateway.Options {
	o.Select = &compose.Selection{Exclude: []string{"delete_*"}}
	return o
}

// newRaw returns the gateway over the raw function.
func newRaw() (*gateway.Gateway, error) { return gateway.New(upstream.Handle(echo), options) }

// newChild returns the gateway over a child, the program echo beside this one.
func newChild() (*gateway.Gateway, error) {
	command, err := echoCommand()
	if err != nil {
		return nil, err
	}
	return gateway.New(command, remembering())
}

// overChild returns a function that makes the gateway over a child.
func overChild(o gateway.Options) func() (handler, error) {
	return func() (handler, error) {
		command, err := echoCommand()
		if err != nil {
			return handler{}, err
		}
		return newGateway(command, o)
	}
}

func echoCommand() (upstream.Upstream, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return upstream.Command{Path: filepath.Join(filepath.Dir(self), "echo")}, nil
}

// overView returns the gateway over a view of so many members. The tool of the first one keeps its name.
func overView(members int, newMember func() (*gateway.Gateway, error)) (handler, error) {
	var all []compose.Member
	var gateways []*gateway.Gateway
	for i := range members {
		g, err := newMember()
		if err != nil {
			return handler{}, errors.Join(err, shutdown(gateways))
		}
		gateways = append(gateways, g)
		all = append(all, compose.Member{Name: fmt.Sprintf("m%d", i), Upstream: g})
	}
	all[0].Prefix = new(string)
	view, err := compose.New(all, compose.Options{Name: "view"})
	if err != nil {
		return handler{}, errors.Join(err, shutdown(gateways))
	}
	front, err := newGateway(view, options)
	if err != nil {
		return handler{}, errors.Join(err, shutdown(gateways))
	}
	return handler{front, func() error { return errors.Join(front.stop(), shutdown(gateways)) }}, nil
}

// shutdown ends the gateways of members.
func shutdown(all []*gateway.Gateway) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	for _, g := range all {
		errs = append(errs, g.Shutdown(ctx))
	}
	return errors.Join(errs...)
}
