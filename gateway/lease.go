package gateway

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/bridge"
)

// leaseInterval is the longest time between two checks of a token. A check may use an answer that is
// up to 30 s old, each may take 5 s, and two must fail if the issuer does not answer: that is
// a minute, or 70 s if the token is forgotten, as thousands came since, and so waits its turn.
const leaseInterval = 10 * time.Second

// lease is how long a client may use what it has opened with a token.
type lease struct {
	credentials func() string // with which it is checked
	principal   string
	end         func(reason connstate.Reason, err error)
	checked     func() // called after each check that has found the token good; nil: nothing is

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	over  bool // nobody needs it any more
}

// stop ends the lease: nobody needs it any more.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// after calls f after a time, unless the lease is over.
func (l *lease) after(wait time.Duration, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.timer = time.AfterFunc(wait, f)
	}
}

// keep ends what was opened once the token is no longer good. failed tells that the last
// check could not find out. The caller must stop the lease when that is over.
func (g *Gateway) keep(l *lease, failed bool) {
	l.after(leaseInterval/2+rand.N(leaseInterval/2), func() { // spread, as many may have come at once
		opts := &g.now.Load().opts
		if opts.Authenticate == nil || !opts.Reauthenticate {
			return
		}
		credentials := l.credentials()
		principal, err := opts.Authenticate(&http.Request{Header: http.Header{"Authorization": {credentials}},
			URL: new(url.URL)})
		if err == nil && principal != l.principal {
			err = errors.New("the credentials are of another principal now")
		}
		refused, _ := errors.AsType[*auth.Error](err)
		fails := refused != nil && refused.Status >= http.StatusInternalServerError
		if err == nil && l.checked != nil {
			l.checked()
		}
		if err == nil || fails && !failed || credentials != l.credentials() {
			g.keep(l, fails)
			return
		}
		reason := connstate.ClosedRevoked
		if refused != nil && refused.Expired {
			reason = connstate.ClosedExpired
		}
		l.end(reason, err)
	})
}

// keepConnection closes a connection once its client may no longer use it. A stream of
// HTTP+SSE is bound to the token that opened it: messages with another one do not prolong
// what a token that was revoked can listen to. A session of Streamable HTTP has the newest
// token of its requests; each of its GETs is bound to its own, see leaseStream.
// The caller must stop the lease when the connection is closed.
func (g *Gateway) keepConnection(c *connstate.Connection) *lease {
	credentials := c.Credentials
	if c.Client().Transport == connstate.TransportSSE {
		credentials = func() string { return c.Client().Credentials }
	}
	l := &lease{credentials: credentials, principal: c.Client().Principal, checked: c.CredentialsChecked,
		end: func(reason connstate.Reason, err error) {
			g.now.Load().opts.Logger.Info("client no longer authorized", "connectionId", c.ShortID(), "err", err)
			c.Close(reason)
		}}
	g.keep(l, false)
	return l
}

// leased is a Handler of a connection that lives as long as its token is good.
type leased struct {
	*bridge.Bridge
	lease *lease
}

// Closed is called once, when the connection is over.
func (l leased) Closed() {
	l.lease.stop()
	l.Bridge.Closed()
}

// leaseStream ends the response to a GET once the token that it came with is no longer good.
// The caller must call stop when it has ended.
func (g *Gateway) leaseStream(credentials, principal, connectionID string, end func()) (stop func()) {
	l := &lease{credentials: func() string { return credentials }, principal: principal,
		end: func(_ connstate.Reason, err error) {
			g.now.Load().opts.Logger.Info("client no longer authorized", "connectionId", connectionID, "err", err)
			end()
		}}
	g.keep(l, false)
	return l.stop
}
