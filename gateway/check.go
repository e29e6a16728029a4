package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// OptionError describes an option that New refuses, because its value is wrong or
// contradicts another option.
type OptionError struct {
	// Option is the wrong field of Options.
	Option string
	// Other is the field that Option contradicts, or "" if the value is wrong by
	// itself. Problem contains the name of Other.
	Other string
	// Problem describes the fault, such as "must be positive".
	Problem string
}

// Error returns the option and the problem.
func (e *OptionError) Error() string { return e.Option + ": " + e.Problem }

// Check returns an error for each option that New refuses for the server that up
// reaches. It starts nothing.
func Check(up upstream.Upstream, opts Options) []*OptionError {
	return opts.withDefaults().check(plain(up))
}

func (o Options) check(up upstream.Upstream) []*OptionError {
	c := checks{o: o}
	c.values()
	c.relations()
	c.sessions(up)
	return c.wrong
}

// validate returns the errors of check as one.
func (o Options) validate(up upstream.Upstream) error {
	var errs []error
	for _, err := range o.check(up) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// maxDuration keeps sums of durations far from overflow.
const maxDuration = 365 * 24 * time.Hour

// checks collects the errors in o.
type checks struct {
	o     Options
	wrong []*OptionError
}

// refuseIf adds a problem of an option, if wrong is true.
func (c *checks) refuseIf(wrong bool, option, problem string) { c.relation(wrong, option, "", problem) }

// relation adds a contradiction between two options, if wrong is true.
func (c *checks) relation(wrong bool, option, other, problem string) {
	if wrong {
		c.wrong = append(c.wrong, &OptionError{Option: option, Other: other, Problem: problem})
	}
}

// values checks each option by itself.
func (c *checks) values() {
	o := reflect.ValueOf(c.o)
	negative := func(name string) bool { field := o.FieldByName(name); return field.CanInt() && field.Int() < 0 }
	for _, name := range []string{
		"InitializationTimeout", "StartTimeout", "InitializeTimeout", "MaxHandshakeAttempts", "RequestTimeout",
		"MaxRequestTimeout", "SessionsSize", "StartConcurrency", "MaxWaiting", "ReadTimeout", "WriteTimeout", "ReconnectDelay",
		"ResumeTime", "MaxMessageBytes", "OutboxBytes", "GateQueue", "MaxPending", "ConnectBurst",
	} {
		c.refuseIf(negative(name), name, "must be positive")
	}
	for i := range o.NumField() {
		if d, ok := o.Field(i).Interface().(time.Duration); ok {
			c.refuseIf(d > maxDuration, o.Type().Field(i).Name, "must be at most a year")
		}
	}
	for _, name := range []string{"ConnectionTimeout", "MaxConnectionsPerIP", "MaxInFlight", "Warm"} {
		c.refuseIf(negative(name), name, "must not be negative")
	}
	oneOf := func(name string, allowed ...string) {
		c.refuseIf(!slices.Contains(allowed, o.FieldByName(name).String()), name, fmt.Sprintf("must be one of %q", allowed))
	}
	oneOf("Sessions", SessionsPerConnection, SessionsShared)
	oneOf("Retry", RetrySafe, RetryNever)
	oneOf("ErrorDetails", ErrorDetailsAuto, ErrorDetailsFull, ErrorDetailsSafe)
	oneOf("EventName", "", connstate.EventMessage, connstate.EventResponse)
	for _, transport := range c.o.Transports {
		c.refuseIf(!slices.Contains(metrics.Transports(), transport), "Transports",
			fmt.Sprintf("%.64q is no transport: must be one of %q", transport, metrics.Transports()))
	}
	c.refuseIf(front.CheckPrefix(c.o.Prefix) != nil, "Prefix", `must be a path such as "/mcp", without a slash at the end`)
	c.refuseIf(c.o.Name != "" && !serverName.MatchString(c.o.Name), "Name",
		"must be at most 64 characters of a-z, 0-9, _ and -, and begin with a letter or a digit")
	var object map[string]json.RawMessage
	c.refuseIf(json.Unmarshal(c.o.Capabilities, &object) != nil || object == nil,
		"Capabilities", `must be a JSON object, such as {"roots":{}}`)
	for _, origin := range c.o.AllowedOrigins {
		c.refuseIf(origin != "*" && strings.Contains(origin, "*"), "AllowedOrigins",
			fmt.Sprintf(`%q is no origin: name each in full; "*" stands only for any origin`, origin))
	}
	for _, name := range c.o.RequestHeaders {
		c.refuseIf(!httpguts.ValidHeaderFieldName(name), "RequestHeaders", fmt.Sprintf("%.64q is not the name of a header", name))
	}
	for _, name := range c.o.ForwardHeaders {
		if err := CheckHeaderName(name); err != nil {
			c.refuseIf(true, "ForwardHeaders", err.Error())
		}
	}
}

// relations checks options against each other.
func (c *checks) relations() {
	o := c.o
	c.relation(o.MaxRequestTimeout > 0 && o.MaxRequestTimeout < o.RequestTimeout,
		"MaxRequestTimeout", "RequestTimeout", "must be at least RequestTimeout")
	c.relation(o.InitializationTimeout > 0 && o.AnnounceDelay >= o.InitializationTimeout,
		"AnnounceDelay", "InitializationTimeout", "must be less than InitializationTimeout")
	c.relation(o.MaxConnections > 0 && o.MaxConnectionsPerIP > o.MaxConnections,
		"MaxConnectionsPerIP", "MaxConnections", "must be at most MaxConnections")
	c.relation(o.MaxHeldBytes > 0 && o.MaxMessageBytes > o.MaxHeldBytes/4,
		"MaxMessageBytes", "MaxHeldBytes", "must be at most a quarter of MaxHeldBytes")
	least, because := o.Warm, "Warm"
	if o.Sessions == SessionsShared {
		least, because = o.SessionsSize, "SessionsSize"
	}
	c.relation(o.MaxSessions > 0 && least > 0 && o.MaxSessions <= least,
		"MaxSessions", because, "must be more than "+because)
	c.relation(o.SinglePath && o.Prefix != "", "SinglePath", "Prefix",
		"contradicts Prefix: the path is the one at which the gateway is mounted")
	c.relation(o.SinglePath && o.serves(TransportStreamable), "SinglePath", "Transports",
		"contradicts Transports: the one path is that of HTTP+SSE")
	for option, set := range map[string]bool{"RequireInitialize": o.RequireInitialize, "AdoptSessions": o.AdoptSessions} {
		c.relation(set && !o.serves(TransportStreamable), option, "Transports", "has no effect without the transport "+TransportStreamable+" in Transports")
	}
	c.relation(o.RequestContext != nil && !o.PassRequest, "RequestContext", "PassRequest", "has no effect without PassRequest")
	c.relation(len(o.RequestHeaders) > 0 && !o.PassRequest, "RequestHeaders", "PassRequest", "has no effect without PassRequest")
	c.relation(o.CORS && len(o.AllowedOrigins) == 0,
		"CORS", "AllowedOrigins", "has no effect without AllowedOrigins")
	c.relation(o.NoAutoInitialize && o.declares(), "Capabilities", "NoAutoInitialize",
		"has no effect with NoAutoInitialize: only the gateway's own initialize declares capabilities")
}

// sessions checks the options that do not fit shared sessions, warm servers or the
// kind of upstream.
func (c *checks) sessions(up upstream.Upstream) {
	o, shared := c.o, c.o.Sessions == SessionsShared
	c.relation(o.SessionsSize > 1 && o.Sessions == SessionsPerConnection, "SessionsSize", "Sessions", "has no effect unless Sessions is shared")
	_, remote := up.(upstream.URL)
	needless := remote && o.Warm > 0 && o.Sessions == SessionsPerConnection
	c.refuseIf(needless, "Warm", "has no effect on a remote server, which is not started here, unless sessions are shared")
	c.relation(!needless && o.Warm > 0 && len(o.ForwardHeaders) > 0, "Warm", "ForwardHeaders",
		"contradicts ForwardHeaders: a server started ahead has no client whose headers it could send")
	c.relation(o.PassRequest && o.Warm > 0, "PassRequest", "Warm",
		"contradicts Warm: a server started ahead has no client whose request it could get")
	c.relation(o.PassRequest && shared, "PassRequest", "Sessions",
		"contradicts Sessions: a shared session does not belong to one client")
	c.principal(up)
	c.relation(shared && o.NoAutoInitialize, "Sessions", "NoAutoInitialize",
		"contradicts NoAutoInitialize: clients that share a session cannot each initialize it")
	c.relation(shared && len(o.ForwardHeaders) > 0, "ForwardHeaders", "Sessions",
		"contradicts Sessions: a shared session cannot send the headers of one client")
	c.relation(shared && o.declares(), "Capabilities", "Sessions",
		"contradicts Sessions: a shared session cannot give a request of the server to one client")
}

// principal checks the options about what a child learns of its client.
func (c *checks) principal(up upstream.Upstream) {
	command, ok := up.(upstream.Command)
	if !ok {
		return
	}
	if command.PrincipalEnv == "" {
		c.refuseIf(c.o.PassRequest, "PassRequest", "has no effect on a child process: set PrincipalEnv of its Command")
		return
	}
	c.refuseIf(c.o.Warm > 0, "Warm", "a child started ahead has no client whose principal it could get")
	c.refuseIf(c.o.Sessions == SessionsShared, "Sessions", "a shared child has no principal of one client")
}

// declares reports whether the synthetic initialize declares any capability.
func (o Options) declares() bool { return len(o.Capabilities) > 0 && string(o.Capabilities) != "{}" }

// serverName matches valid names of servers. A name is part of a path and the value
// of a label.
var serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// CheckHeaderName returns an error if neither the operator nor a client may set a
// header on requests to a remote server: the name is not valid, or HTTP or MCP define
// the header.
func CheckHeaderName(name string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("%.64q is not the name of a header", name)
	}
	switch name = http.CanonicalHeaderKey(name); name {
	case "Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host",
		"Keep-Alive", "Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
	default:
		if !strings.HasPrefix(name, "Mcp-") {
			return nil
		}
	}
	return fmt.Errorf("the transport sets %s itself", name)
}
