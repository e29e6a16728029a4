package sse

import (
	"fmt"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// Options configure a Handler. The zero value gives the defaults.
type Options struct {
	// Options are those of every HTTP transport.
	httpcheck.Options
	// Quiet withholds the connection event and the announcement.
	Quiet bool
	// Dialect decides the names of the events with responses for all clients;
	// "" leaves it to each client. See connstate.Dialect.
	Dialect connstate.Dialect
	// SinglePath serves the messages at the path of the stream, with the connection's id
	// in the query.
	SinglePath bool
}

func checkDialect(d string) error {
	switch d {
	case "", connstate.EventMessage, connstate.EventResponse:
		return nil
	}
	return fmt.Errorf("event %q: must be %q or %q", d, connstate.EventMessage, connstate.EventResponse)
}
