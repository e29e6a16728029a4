package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	process "github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// validate returns an error for each option that is wrong, or contradicts another one, in
// front of the server that up reaches.
func (s *settings) validate(up upstream.Upstream) error {
	c := checks{o: s.Options}
	c.values()
	c.refuseIf(s.MaxMessageBytes > s.MaxHeldBytes/4, "MaxMessageBytes",
		fmt.Sprintf("must be at most %d, a quarter of the bytes that may wait", s.MaxHeldBytes/4))
	c.refuseIf(s.Cluster != nil && s.Replicas == nil, "Cluster", "must be what cluster.Join returns")
	c.sessions(up)
	return errors.Join(c.wrong...)
}

// OptionError reports an option of a Gateway that is wrong, or cannot change. All that are wrong come in one error,
// which has an Unwrap() []error as those of errors.Join have.
type OptionError struct {
	// Option is the name of the field of Options, or PrincipalEnv for that of an
	// upstream.Command.
	Option string
	// Other is the option that Option contradicts; empty if it is wrong by itself.
	Other string
	// Problem says what is wrong, with %s in the place of Other if that is set.
	Problem string
	// Err is ErrFixed for an option that cannot change, else nil.
	Err error
}

// Error returns the text of the error, with the names of the fields.
func (e *OptionError) Error() string {
	problem := e.Problem
	if e.Other != "" {
		problem = fmt.Sprintf(problem, e.Other)
	}
	return e.Option + ": " + problem
}

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// maxDuration keeps products of durations far from overflow.
const maxDuration = 365 * 24 * time.Hour

// checks collects the errors in o.
type checks struct {
	o     Options
	wrong []error
}

// refuseIf adds a problem of an option, if wrong is true.
func (c *checks) refuseIf(wrong bool, option, problem string) {
	if wrong {
		c.wrong = append(c.wrong, &OptionError{Option: option, Problem: problem})
	}
}

// contradictIf adds a problem of an option beside another one, if wrong is true. The problem
// has %s in the place of the other.
func (c *checks) contradictIf(wrong bool, option, other, problem string) {
	if wrong {
		c.wrong = append(c.wrong, &OptionError{Option: option, Other: other, Problem: problem})
	}
}

// oneOf refuses a value of an option that is none of those allowed.
func oneOf[T interface {
	comparable
	fmt.Stringer
}](c *checks, option string, value T, allowed ...T) {
	words := make([]string, len(allowed)) // fmt would write a slice of such integers as one text
	for i, one := range allowed {
		words[i] = strconv.Quote(one.String())
	}
	c.refuseIf(!slices.Contains(allowed, value), option, "must be one of "+strings.Join(words, ", "))
}

// values checks the options, without those that sessions checks.
func (c *checks) values() {
	o := c.o
	c.refuseIf(o.InitializationTimeout < 0, "InitializationTimeout", "must be positive")
	c.refuseIf(o.StartTimeout < 0, "StartTimeout", "must be positive")
	c.refuseIf(o.RequestTimeout < 0, "RequestTimeout", "must be positive")
	c.refuseIf(o.MaxMessageBytes < 0, "MaxMessageBytes", "must be positive")
	longest := max(o.InitializationTimeout, o.StartTimeout, o.HeartbeatInterval, o.IdleTimeout, o.RequestTimeout)
	if o.Remember != nil {
		c.refuseIf(o.Remember.For < 0, "Remember.For", "must be positive")
		longest = max(longest, o.Remember.For, o.Remember.ProcessIdle)
	}
	c.refuseIf(longest > maxDuration, "Options", "no duration may be over a year")
	oneOf(c, "Sessions", o.Sessions, SessionsPerConnection, SessionsShared)
	oneOf(c, "ErrorDetails", o.ErrorDetails, ErrorDetailsAuto, ErrorDetailsFull, ErrorDetailsSafe)
	oneOf(c, "Page", o.Page, PageAuto, PageOn, PageOff)
	c.refuseIf(len(o.Transports) == 0, "Transports", "must name at least one")
	for _, transport := range o.Transports {
		oneOf(c, "Transports", transport, TransportSSE, TransportStreamable, TransportStdio)
	}
	c.refuseIf(o.IDKey != nil && len(o.IDKey) < signedid.MinKey, "IDKey",
		fmt.Sprintf("must have at least %d bytes", signedid.MinKey))
	c.refuseIf(httpcheck.CheckPrefix(o.Prefix) != nil, "Prefix",
		`must be a path such as "/tools", without a slash at the end`)
	c.refuseIf(o.Name != "" && !serverName.MatchString(o.Name), "Name",
		"must be at most 64 characters of a-z, 0-9, _ and -, and begin with a letter or a digit")
	for _, origin := range o.AllowedOrigins {
		u, err := url.Parse(origin)
		c.refuseIf(origin != "*" && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin ||
			strings.Contains(origin, "*")),
			"AllowedOrigins", fmt.Sprintf(`%q is not an origin: must be a scheme and a host in full, `+
				`such as "https://app.example.com", or "*" for any`, origin))
	}
	for _, host := range o.AllowedHosts {
		_, notIP := netip.ParseAddr(host)
		c.refuseIf(host != "*" && notIP != nil && strings.ContainsAny(host, ":/ []*"),
			"AllowedHosts", fmt.Sprintf(`%q is not a host: must be a name without port, `+
				`such as "gateway.example.com", or "*" for any`, host))
	}
	if _, err := compileSelection(o.Select); err != nil {
		c.refuseIf(true, "Select", err.Error())
	}
	if o.PassRequest != nil {
		for _, name := range o.PassRequest.Headers {
			c.refuseIf(!httpguts.ValidHeaderFieldName(name), "PassRequest",
				fmt.Sprintf("%.64q is not the name of a header", name))
		}
	}
	for _, name := range o.ForwardHeaders {
		if err := httpcheck.CheckHeaderName(name); err != nil {
			c.refuseIf(true, "ForwardHeaders", err.Error())
		}
	}
	c.contradictIf(o.MaxConnections > 0 && o.MaxConnectionsPerIP > o.MaxConnections, "MaxConnectionsPerIP",
		"MaxConnections", "must be at most %s")
	c.contradictIf(o.Cluster != nil && o.IDKey == nil, "Cluster", "IDKey", "needs an %s, the same for each replica")
	c.contradictIf(o.SinglePath && o.Prefix != "", "SinglePath", "Prefix",
		"contradicts %s: the path is the one at which the gateway is mounted")
}

// sessions checks the options that do not fit shared sessions, warm servers or the
// kind of upstream.
func (c *checks) sessions(up upstream.Upstream) {
	o, shared := c.o, c.o.Sessions == SessionsShared
	_, remote := up.(remote.URL)
	needless := remote && o.Warm > 0 && !shared
	c.contradictIf(needless, "Warm", "Sessions",
		"has no effect on a remote server, which is not started here, unless %s is shared")
	c.contradictIf(!needless && o.Warm > 0 && len(o.ForwardHeaders) > 0, "Warm", "ForwardHeaders",
		"contradicts %s: a server started ahead has no client whose headers it could send")
	c.contradictIf(o.PassRequest != nil && o.Warm > 0, "PassRequest", "Warm",
		"contradicts %s: a server started ahead has no client whose request it could get")
	c.contradictIf(o.PassRequest != nil && shared, "PassRequest", "Sessions",
		"contradicts %s: a shared session does not belong to one client")
	c.contradictIf(shared && o.NoAutoInitialize, "Sessions", "NoAutoInitialize",
		"contradicts %s: clients that share a session cannot each initialize it")
	c.contradictIf(shared && len(o.ForwardHeaders) > 0, "ForwardHeaders", "Sessions",
		"contradicts %s: a shared session cannot send the headers of one client")
	c.refuseIf(shared && isPerPrincipal(up), "Sessions",
		"a shared session is not for principals of which each has a login of its own")
	c.refuseIf(o.Authenticate == nil && isPerPrincipal(up), "Authenticate",
		"without it nobody has a login of its own")
	if _, isView := up.(composed); isView {
		c.inFrontOfView()
	}
	command, ok := up.(process.Command)
	switch {
	case !ok:
	case command.PrincipalEnv == "":
		c.contradictIf(o.PassRequest != nil, "PassRequest", "PrincipalEnv",
			"has no effect on a child process: set %s of its Command")
	default:
		c.contradictIf(o.Warm > 0, "Warm", "PrincipalEnv",
			"contradicts %s: a child started ahead has no client whose principal it could get")
		c.contradictIf(shared, "Sessions", "PrincipalEnv",
			"contradicts %s: a shared child has no principal of one client")
	}
}

// inFrontOfView refuses the options that cannot hold in front of a view. A view resolves a name that a client calls, so
// rules here would miss tools that have several names. Its sessions belong to the client that opens them.
func (c *checks) inFrontOfView() {
	c.refuseIf(c.o.Select != nil, "Select",
		"has no effect in front of a view: give its members the rules, by the Selection of a compose.Member")
	c.refuseIf(c.o.Warm > 0, "Warm",
		"has no effect in front of a view: give it to the gateways of its members, which start the servers")
	c.refuseIf(c.o.Sessions == SessionsShared, "Sessions",
		"a view has a session for each client: share those of the gateways of its members")
}

// serverName matches valid names of servers. A name is part of a path and the value
// of a label.
var serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
