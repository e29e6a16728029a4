// Package diagnosis finds out, step by step, what a client meets at the URL of an MCP server: a gateway,
// any other server, or a proxy in front of one. It is a client that speaks no more MCP than it must, so
// that it sees what SDKs hide: status codes, times, and streams that a proxy holds back or cuts.
//
// The table steps has all that it tries, in that order.
package diagnosis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// Options say what to look at. URL is needed.
type Options struct {
	URL    string
	Header http.Header // of each request, such as Authorization
	// Login is the Authorization of the login of this user, for each request; empty: nobody is logged in. LoginCommand
	// is what a person types to log in at the server; empty: there are no logins there.
	Login, LoginCommand string
	// LoginProblem is why no Login can be had of a user who is logged in; empty: there is no problem.
	LoginProblem string
	// Origin is that of a web page whose requests are tried; empty: none are.
	Origin string
	// Connector is the hosted client whose needs are looked at, such as claude.ai; empty: none.
	Connector string
	// Wait is how long a stream is left silent, to see whether something cuts it; 0: not at all.
	Wait time.Duration
	// Patience bounds each step; 0 means 10 s.
	Patience time.Duration
	// Grace is how long to wait for an event that a server need not send; 0 means 3 s.
	Grace time.Duration
	// Begin, if not nil, is called before each step, with the time that it may take.
	Begin func(name string, limit time.Duration)
}

// Result is how a step ended.
type Result string

// The results of a step.
const (
	OK      Result = "ok"
	Failed  Result = "failed"
	Missing Result = "not served" // which is no fault, unless the other transport is missing too
	Untried Result = "not tried"  // because of what an earlier step has found
	Stopped Result = "stopped"    // by the end of the context, and nothing was tried after it
)

// Step is one thing that was tried.
type Step struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Milliseconds is the time that it took; 0 if there was nothing to measure.
	Milliseconds float64 `json:"milliseconds,omitzero"`
	Detail       string  `json:"detail"`
	// Remedy is what to do; empty unless the step failed.
	Remedy string `json:"remedy,omitempty"`
}

// step is a row of the table of what is tried.
type step struct {
	name string
	// after is an earlier step that must have worked; empty: none.
	after string
	// when reports whether there is something to try; nil: there always is.
	when func(*run) bool
	// try returns what was found. Its error is a *fault, missing, untried, or one of the network.
	try func(r *run, ctx context.Context) (detail string, err error)
	// ends says that nothing more can be found out after a fault.
	ends bool
	// reads says that it reads what is there, and has a time of its own only if it sends a request.
	reads bool
	// waits says that it takes Options.Wait longer.
	waits bool
}

// steps are tried in this order. One of the two transports is enough for a client.
var steps = []step{
	{name: "URL", when: (*run).hasNoURL, try: (*run).noURL, reads: true, ends: true},
	{name: "proxy", when: (*run).isProxied, try: (*run).proxy, reads: true},
	{name: "DNS", when: (*run).hasName, try: (*run).lookUp, ends: true},
	{name: "TCP", when: (*run).isDirect, try: (*run).connect, ends: true},
	{name: "TLS", when: (*run).isSecure, try: (*run).shakeHands, ends: true},
	{name: "HTTP", try: (*run).speak, ends: true},
	{name: "Host", when: (*run).isAnswered, try: (*run).isHostServed, reads: true, ends: true},
	{name: originServed, when: (*run).isAnswered, try: (*run).isOriginServed, reads: true},
	{name: "authentication", when: (*run).isAnswered, try: (*run).isAuthenticated, reads: true, ends: true},

	{name: streamableInitialize, try: (*run).initialize, ends: true}, // HTTP+SSE would fail likewise
	{name: streamableCall, after: streamableInitialize, try: (*run).call},
	{name: streamableGET, after: streamableInitialize, when: (*run).hasSessionID, try: (*run).get},
	{name: "Streamable HTTP: first event", after: streamableCall, try: (*run).firstEvent, reads: true},
	{name: "Streamable HTTP: a silent stream", after: streamableInitialize, when: (*run).isToWait,
		try: (*run).waitOverStreamable, waits: true},
	{name: "Streamable HTTP: DELETE", after: streamableInitialize, when: (*run).hasSessionID, try: (*run).end},

	{name: sseEndpoint, try: (*run).open},
	{name: sseInitialize, after: sseEndpoint, try: (*run).initializeOverSSE},
	{name: sseCall, after: sseInitialize, try: (*run).callOverSSE},
	{name: "HTTP+SSE: a silent stream", after: sseEndpoint, when: (*run).isToWait, try: (*run).waitOverSSE,
		waits: true},
	{name: sseAnnouncement, after: sseEndpoint, try: (*run).await},
	{name: "HTTP+SSE: a call without initialize", after: sseAnnouncement, try: (*run).callAnnounced},

	{name: "MCP", when: (*run).hasNoTransport, try: (*run).noMCP},
	{name: "CORS", when: (*run).isForPage, try: (*run).cors},
}

// loginSteps follow if some step has failed for want of a token, or a connector has to log in. They are what clients do
// then, in the order of MCP 2025-11-25 (authorization, discovery).
var loginSteps = []step{
	{name: "OAuth: resource metadata", try: (*run).readResource},
	{name: "OAuth: issuer metadata", when: (*run).hasIssuer, try: (*run).readIssuer},
}

// The names of steps on which others depend.
const (
	originServed         = "Origin"
	streamableInitialize = "Streamable HTTP: initialize"
	streamableCall       = "Streamable HTTP: a call"
	streamableGET        = "Streamable HTTP: GET"
	sseEndpoint          = "HTTP+SSE: endpoint"
	sseInitialize        = "HTTP+SSE: initialize"
	sseCall              = "HTTP+SSE: a call"
	sseAnnouncement      = "HTTP+SSE: mcp-response"
)

// run is one diagnosis, and what has been found so far.
type run struct {
	Options
	at        *url.URL // nil if URL is none
	transport *http.Transport
	client    *http.Client
	report    func(Step)
	secrets   *strings.Replacer // hides what the user has given
	results   map[string]Result // of the steps that were tried
	asks      atomic.Bool       // a request was sent in this step

	isInside  bool               // the URL is at an address of this machine or network
	first     first              // the answer to the first request
	challenge *oauthex.Challenge // of the refusal for want of a token; nil if there was none
	issuer    string             // of tokens
	connector connector

	streamable struct {
		session *openSession // from its initialize on
		stream  *events      // of the GET, opened then; nil if the server has none
		opened  time.Time
		event   string // says how soon an answer came that is a stream; empty if none was
	}
	sse       sseStream // whose session is initialized here
	announced sseStream // whose session the server initializes
}

// Run tries each step and reports it. It returns whether a client can work there. When ctx ends, the step
// at which that was is the last.
func Run(ctx context.Context, o Options, report func(Step)) bool {
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 3 * time.Second
	}
	if o.Login != "" {
		header := http.Header{"Authorization": {o.Login}}
		for name, values := range o.Header {
			header[name] = values
		}
		o.Header = header
	}
	r := &run{Options: o, report: report, results: make(map[string]Result)}
	if at, err := url.Parse(o.URL); err == nil && at.Host != "" {
		r.at = at
	}
	r.secrets = hiding(r.at, r.Header)
	r.transport = http.DefaultTransport.(*http.Transport).Clone()
	if r.transport.TLSClientConfig == nil {
		r.transport.TLSClientConfig = new(tls.Config)
	}
	r.client = &http.Client{Transport: r.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer r.transport.CloseIdleConnections()
	if r.at != nil && r.isProxied() { // else the connection shows it
		r.isInside = hosts.NamesInside(r.at)
	}
	defer r.close()
	works := r.walk(ctx, steps)
	if r.Connector != "" && ctx.Err() == nil {
		works = r.walk(ctx, connectorSteps) && works
		if r.challenge == nil && r.isLocked() { // a connector has no token, whatever the user has given
			r.challenge = &r.connector.challenge
		}
	}
	if r.challenge != nil && ctx.Err() == nil {
		canLogIn := r.walk(ctx, loginSteps)
		works = works && (canLogIn || r.Connector == "")
	}
	return works
}

// walk goes through a table, and reports whether no step failed.
func (r *run) walk(ctx context.Context, table []step) bool {
	works := true
	for _, s := range table {
		if s.after != "" && !r.worked(s.after) || s.when != nil && !s.when(r) {
			continue
		}
		result := r.runStep(ctx, s)
		r.results[s.name] = result
		works = works && result != Failed && result != Stopped
		if result == Stopped || result == Failed && s.ends {
			break
		}
	}
	return works
}

// worked reports whether a step was tried and worked.
func (r *run) worked(name string) bool { return r.results[name] == OK }

// fault is why a step failed, and what to do.
type fault struct{ what, remedy string }

func (f *fault) Error() string { return f.what }

func isFault(err error) bool {
	var f *fault
	return errors.As(err, &f)
}

// missing says that something is not served, which may be in order.
type missing string

func (m missing) Error() string { return string(m) }

// untried is why something was not tried that would be.
type untried string

func (u untried) Error() string { return string(u) }

// runStep tries and reports one step.
func (r *run) runStep(ctx context.Context, s step) Result {
	patience := r.Patience
	if s.waits {
		patience += r.Wait
	}
	if r.Begin != nil {
		r.Begin(s.name, patience)
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.asks.Store(false)
	began := time.Now()
	detail, err := s.try(r, bounded)
	done := Step{Name: s.name, Result: OK, Detail: detail, Milliseconds: milliseconds(time.Since(began))}
	var f *fault
	var m missing
	var u untried
	if isUntried := errors.As(err, &u); isUntried || s.reads && !r.asks.Load() {
		done.Milliseconds = 0
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		done.Result, done.Detail = Stopped, "stopped here"
	case errors.As(err, &m):
		done.Result, done.Detail = Missing, string(m)
	case u != "":
		done.Result, done.Detail = Untried, string(u)
	case errors.As(err, &f):
		done.Result, done.Detail, done.Remedy = Failed, f.what, f.remedy
	case errors.Is(err, context.DeadlineExceeded):
		done.Result, done.Detail = Failed, fmt.Sprintf("there was no answer in %v", r.Patience)
		done.Remedy = "see whether the server runs, and whether something between holds its answers back"
	default:
		done.Result, done.Detail, done.Remedy = Failed, causeOf(err), "see whether the server runs, and its log"
	}
	done.Detail, done.Remedy = r.shown(done.Detail), r.shown(done.Remedy)
	r.report(done)
	return done.Result
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// close ends the streams that steps have left open.
func (r *run) close() {
	if r.streamable.stream != nil {
		r.streamable.stream.close()
	}
	r.sse.close()
	r.announced.close()
}
