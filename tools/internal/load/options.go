package load

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Transport is a transport of MCP.
type Transport string

// The transports.
const (
	// SSE is HTTP+SSE (MCP 2024-11-05).
	SSE Transport = "sse"
	// Streamable is Streamable HTTP with sessions (MCP 2025-03-26 to 2025-11-25).
	Streamable Transport = "streamable"
	// Stateless is Streamable HTTP without sessions (MCP 2026-07-28).
	Stateless Transport = "stateless"
)

// Options say what load to put on a server. The zero value gives the documented
// defaults.
type Options struct {
	// Transport is how the clients speak to the server. Default SSE.
	Transport Transport
	// Clients is the number of clients. Default 64.
	Clients int
	// Calls is the number of calls over all clients, rounded up so that all workers
	// make the same number. Default 100,000. A run keeps about 500 bytes of each.
	Calls int
	// InFlight is the number of calls that a client has in flight. Default 4.
	InFlight int
	// FreeRunning lets each worker send its next call as soon as it has an answer. By
	// default workers wait until all have theirs, so that all clients use the same ids
	// at the same time.
	FreeRunning bool
	// Rate bounds the calls per second over all clients. Default 0, unlimited.
	Rate float64
	// Timeout bounds opening a stream, each POST, and the wait for each answer.
	// Default 30 s.
	Timeout time.Duration
	// Settle is how long to read the streams after the last answer, for late and
	// duplicate ones. Default 1 s.
	Settle time.Duration

	// Header is sent with each request.
	Header http.Header
	// Tokens are bearer tokens, so that the clients have different principals: each
	// client sends one, in turn. Default: none.
	Tokens []string
	// Capabilities is what the clients declare, a JSON object. Default {}.
	Capabilities string
	// NoInitialize leaves the handshake to the server. Answers may then come under two
	// event names, message and mcp-response: once under each.
	NoInitialize bool

	// Tool is called with the secret as its argument Argument, and returns it.
	// Default: the tool named echo, and its only string argument.
	Tool, Argument string
	// ProgressTool, if not empty, is every other call's tool. With ProgressArgument,
	// that argument is the secret, which the result and the messages of its progress
	// must hold. Without, the tool gets no arguments, and they need not hold it.
	ProgressTool, ProgressArgument string

	// Host, if not nil, returns the host and port to which a client sends a call, both from
	// 1, to reach another replica of the target. All else goes to that of call 0.
	Host func(client int, call int64) string

	// Payload is how many bytes of text the argument of each call has beside its
	// secret. The answer must hold at least as many. Default 0.
	Payload int
	// Sample, if not nil, is called just before the first call and just after the last
	// one, to measure what the calls alone cost the server.
	Sample func()
}

func (o Options) withDefaults() Options {
	o.Transport = cmp.Or(o.Transport, SSE)
	o.Capabilities = cmp.Or(o.Capabilities, "{}")
	o.Clients = cmp.Or(o.Clients, 64)
	o.Calls = cmp.Or(o.Calls, 100_000)
	o.InFlight = cmp.Or(o.InFlight, 4)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Settle = cmp.Or(o.Settle, time.Second)
	workers := o.Clients * o.InFlight
	if rest := o.Calls % max(workers, 1); rest > 0 {
		o.Calls += workers - rest
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.Clients < 1 || o.Calls < 1 || o.InFlight < 1:
		return errors.New("clients, calls and calls in flight must be at least 1")
	case o.Rate < 0 || o.Timeout < 0 || o.Settle < 0 || o.Payload < 0:
		return errors.New("rate, timeout, settling time and payload must not be negative")
	case o.Transport != SSE && o.Transport != Streamable && o.Transport != Stateless:
		return fmt.Errorf("there is no transport %q", o.Transport)
	case o.Capabilities[0] != '{' || !json.Valid([]byte(o.Capabilities)):
		return errors.New("capabilities must be a JSON object")
	case o.ProgressTool == "" && o.ProgressArgument != "":
		return errors.New("an argument for progress needs its tool")
	}
	return nil
}

// parseTarget returns the URL of a stream.
func parseTarget(target string) (*url.URL, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not an http or https URL, such as http://127.0.0.1:8080/sse", target)
	}
	return u, nil
}
