// Package stdio serves one client over a pair of streams, such as stdin and stdout of this
// process: one JSON-RPC message on each line, and nothing else (MCP 2025-11-25,
// transports, stdio). It is for agents that only start programs.
//
// The client has a connection like any other: its messages wait at the gate until the
// session is ready, each request is answered once, and a server that dies is started
// again without the client noticing. There is no announcement and no heartbeat.
package stdio

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Backend provides the handler of a connection. See httpcheck.Backend.
type Backend interface {
	Accept(c *connstate.Connection) connstate.Handler
}

// Options configure Serve. The zero value gives the defaults.
type Options struct {
	// MaxMessageBytes bounds a line of the client. Default 4 MiB.
	MaxMessageBytes int
	// Grace bounds the wait for answers, and for the client to read them, once the
	// client has sent its last message. Default 15 s.
	Grace time.Duration
	// Metrics counts; nil: nothing is counted.
	Metrics *metrics.Metrics
}

// Serve opens a connection in registry for the client that writes to in and reads from
// out, and serves it until the client has closed in and has its answers, out breaks, ctx
// ends, or the connection is closed. It returns nil for a client that left in order, and
// for a connection that the registry's owner closed.
//
// When Serve returns before in has ended, one goroutine still reads from in; it ends with
// the next line or the end of in.
func Serve(ctx context.Context, backend Backend, registry *connstate.Registry, in io.Reader, out io.Writer,
	o Options) error {
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 4<<20)
	o.Grace = cmp.Or(o.Grace, 15*time.Second)
	opened, err := registry.Open(connstate.Client{Transport: connstate.TransportStdio, Local: true, Quiet: true,
		Dialect: connstate.EventMessage})
	if err != nil {
		return fmt.Errorf("serve stdio: %w", err)
	}
	defer registry.Remove(opened)
	c := connstate.ForTransport{Connection: opened}
	defer c.Close(connstate.ClosedError) // only counts when something has panicked
	w := &writer{out: bufio.NewWriterSize(out, 64<<10), c: c, taken: make(chan connstate.Event, maxTaken)}
	c.Bind(backend.Accept(opened))
	c.Attach(w.acceptEvent)
	ended := make(chan error, 1)
	go func() { // ends with in, or at its next line
		ended <- read(in, c, o)
	}()
	written := make(chan error, 1)
	go func() { written <- w.writeEvents() }() // ends with the connection, or a Write that fails
	return awaitEnd(ctx, c, ended, written, o)
}

// awaitEnd waits for the first reason to end, and ends the connection.
func awaitEnd(ctx context.Context, c connstate.ForTransport, ended, written <-chan error, o Options) error {
	select {
	case err := <-ended:
		return errors.Join(err, finish(ctx, c, err == nil, written, o.Grace))
	case err := <-written:
		c.Close(connstate.ClosedWriteError)
		return err
	case <-c.Done():
		if reason := c.Reason(); reason != connstate.ClosedShutdown {
			return fmt.Errorf("serve stdio: connection closed: %s", reason)
		}
		return nil
	case <-ctx.Done():
		failRest(c)
		c.CloseGracefully(connstate.ClosedShutdown, stuckTimeout)
		return context.Cause(ctx)
	}
}

// failRest answers the requests that the server has not answered.
func failRest(c connstate.ForTransport) {
	for _, r := range c.Unanswered() {
		r.Fail(jsonrpc.ReasonError("the gateway ends, and the server has not answered", "draining", false),
			metrics.ErrorDraining)
	}
}

// finish ends the connection of a client that sends no more, once what was asked is
// answered, if answers are wanted, and written.
func finish(ctx context.Context, c connstate.ForTransport, answers bool, written <-chan error,
	grace time.Duration) error {
	last := time.Now().Add(grace)
	if answers {
		select {
		case <-c.Quiet():
		case <-c.Done():
		case <-time.After(grace):
		case <-ctx.Done():
			last = time.Now()
		case err := <-written:
			c.Close(connstate.ClosedWriteError)
			return err
		}
		failRest(c)
	}
	c.CloseGracefully(connstate.ClosedClient, max(stuckTimeout, time.Until(last)))
	select { // why the last messages could not be written, nil if they were
	case err := <-written:
		return err
	case <-time.After(stuckTimeout):
		return errors.New("serve stdio: the client does not read")
	}
}

// stuckTimeout is how long a Write may hang after the connection is closed before it
// counts as stuck.
const stuckTimeout = time.Second

// read passes the lines of a client on, until in ends. It answers a line that is no
// message, and one over the limit, with an error.
func read(in io.Reader, c connstate.ForTransport, o Options) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := wire.ReadLine(lines, o.MaxMessageBytes)
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			o.Metrics.PostRejected(metrics.PostTooLarge)
			refuse(c, jsonrpc.Null, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the message is over %d bytes",
				o.MaxMessageBytes))
			err = wire.SkipLine(lines)
		case len(line) > 0:
			receive(line, c, o)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("serve stdio: read: %w", err)
		}
	}
}

// receive handles a line of the client.
func receive(line []byte, c connstate.ForTransport, o Options) {
	m, err := wire.ParseClient(line)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		reason, id := metrics.PostInvalidRequest, jsonrpc.Null
		if e.Code == jsonrpc.CodeParseError {
			reason = metrics.PostInvalidJSON
		}
		if m != nil {
			id = m.ID
		}
		o.Metrics.PostRejected(reason)
		refuse(c, id, e)
		return
	}
	if e := connstate.CheckClear(m); e != nil {
		o.Metrics.PostRejected(metrics.PostInvalidRequest)
		if m.Kind == jsonrpc.Request {
			refuse(c, m.ID, e)
		}
		return
	}
	if err := c.CheckBudget(m); err != nil {
		o.Metrics.PostRejected(metrics.RejectedBudget)
		if m.Kind == jsonrpc.Request {
			refuse(c, m.ID, jsonrpc.ReasonError(err.Error()+": try again later", "server_busy", true))
		}
		return
	}
	c.Observe(m, "")
	c.Receive(m)
}

// refuse answers a message that was not taken.
func refuse(c connstate.ForTransport, id jsonrpc.ID, e *jsonrpc.Error) {
	c.RespondNow(id, jsonrpc.NewError(id, e))
}
