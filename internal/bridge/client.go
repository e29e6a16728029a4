package bridge

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxParams bounds the initialize params of a client that a bridge keeps for later
// sessions, in bytes. A client with larger params gets the stored result.
const maxParams = 64 << 10

// Options configure the bridges of a gateway, which share one Options. The fields
// have no defaults.
type Options struct {
	// Supplier returns the supplier of the sessions from now on. It is the same as before, or the successor
	// of that one.
	Supplier func() *handshake.Supplier
	// Selection returns what clients may see of the server now, and use; nil: everything.
	Selection func() *Selection
	// Narrows reports whether the server itself leaves out what a client has narrowed away: see asker.Asker.Allows.
	Narrows func() bool
	// Server is what errors call the server.
	Server string
	// Gateway is the Name, else the Title, of the gateway; empty if it has neither.
	Gateway string
	// Params are the params of the synthetic initialize. nil: clients initialize
	// their sessions themselves, and the gateway forwards initialize like any other
	// request.
	Params               json.RawMessage
	MaxHandshakeAttempts int
	// Remedy returns what to do about a server that has not started; empty if that is not known. nil: it never is.
	Remedy func(error) string
	// Times returns the times for what begins now.
	Times func() Times
	// Detailed reports whether a client may see the details of errors.
	Detailed func(connstate.Client) bool
	// Losses remembers the clients that were lost to a start; it must not be nil.
	Losses *handshake.OncePerHour
	// Logger, Limited and Metrics must not be nil. Limited is Logger for warnings that
	// a client, or a server that keeps dying, can cause at will.
	Logger  *slog.Logger
	Limited *slog.Logger
	Metrics *metrics.Metrics
}

// autoInitializes reports whether the gateway initializes the sessions of clients by itself.
func (o *Options) autoInitializes() bool { return o.Params != nil }

// Times are the settings of a gateway with these names.
type Times struct {
	InitializationTimeout time.Duration // after it a start is late
	InitializeTimeout     time.Duration
	AnnounceDelay         time.Duration // how long initialize waits for the client's own
}

// client is the client of a bridge, as all parts of the bridge see it: the connection, and how it is to be served.
type client struct {
	opts     *Options
	c        connstate.ForHandler
	ctx      context.Context // ends with the connection
	settings clientState
	narrow   *selection.Narrowing // of the client; nil: none
}

// selection returns what the client may see of the server now, and use; nil: everything.
func (c *client) selection() *Selection {
	s := c.opts.Selection()
	if c.narrow == nil || c.opts.Narrows() {
		return s
	}
	return s.narrowed(c.narrow)
}

// shares reports whether connections share sessions.
func (c *client) shares() bool { return c.opts.Supplier().Shares() }

// log returns a logger with the connection's id. An idle connection keeps none.
func (c *client) log() *slog.Logger { return c.opts.Logger.With("connectionId", c.c.ShortID()) }

// limited is log with Options.Limited.
func (c *client) limited() *slog.Logger { return c.opts.Limited.With("connectionId", c.c.ShortID()) }

// party returns on whose behalf the connection starts sessions: that of its principal,
// or of its address without authentication.
func (c *client) party() string {
	who := c.c.Client()
	if who.Principal != "" {
		return "principal " + who.Principal
	}
	return "address " + subnet.Of(who.Addr).String()
}

// who is the client, for what is remembered.
func (c *client) who() string { return remember.Principal(c.c.Client().Principal) }

// seesDetails reports whether the client may see the details of errors.
func (c *client) seesDetails() bool { return c.opts.Detailed(c.c.Client()) }

// forwarded returns a context with what the client's request has for the server, and with the client itself: a server
// at a URL gets its headers, and one in this process serves it.
func (c *client) forwarded() context.Context {
	who := c.c.Client()
	ctx := who.Context
	if ctx == nil {
		ctx = context.Background()
	}
	a := &asker.Asker{
		Principal: who.Principal, Addr: who.Addr, Local: who.Local, Proxied: who.Proxied, UserAgent: who.UserAgent,
		Connection: c.c.ShortID(), Header: who.Header, Credentials: c.c.Credentials, Details: c.seesDetails,
		OnCheck: c.c.OnCredentials, OnListen: c.c.OnListen, Gateway: c.opts.Gateway, Logger: c.opts.Logger,
		Values: who.Context,
	}
	if who.Transport == connstate.TransportSSE {
		a.OfStream = who.Credentials
	}
	if c.narrow != nil {
		a.Allows = c.narrow.Allows
	}
	return asker.NewContext(ctx, a)
}

// synthetic returns the params of the synthetic initialize: with the version of a client
// that has negotiated one earlier.
func (c *client) synthetic() json.RawMessage {
	params, version := c.opts.Params, c.c.Client().Version
	if !c.opts.autoInitializes() || version == "" {
		return params
	}
	return rawjson.SetMember(params, json.RawMessage(strconv.Quote(version)), "protocolVersion")
}

// autoID returns the id of the synthetic initialize, as the client sees it.
func (c *client) autoID() jsonrpc.ID {
	return jsonrpc.ID(strconv.Quote("auto-initialize-" + c.c.ID()))
}

// isTold reports whether a client that was promised a result is told when a list of that kind changes. A view promises
// that always, so a client in this process is told although the server has not promised it.
func (c *client) isTold(promised *handshake.Result, kind string) bool {
	if c.c.Client().Transport == connstate.TransportInProcess {
		return promised.Advertises(kind)
	}
	return promised.Advertises(kind, "listChanged")
}

// notifyListsChanged tells the client of the lists that have changed, as far as it was promised to be told. It
// does not wait.
func (c *client) notifyListsChanged(promised *handshake.Result, changed func(kind string) bool) {
	for _, kind := range remember.Kinds() {
		if changed(kind) && c.isTold(promised, kind) {
			c.c.SendNow("", jsonrpc.NewNotification("notifications/"+kind+"/list_changed", nil))
		}
	}
}
