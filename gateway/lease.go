package gateway

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
)

// leaseInterval is the longest time between two checks of a connection. What a check remembers is
// up to 30 s old, each may take 5 s, and two must fail if the issuer does not answer: that is
// a minute, or 70 s if the token is forgotten, as thousands came since, and so waits its turn.
const leaseInterval = 10 * time.Second

// keepLease closes a connection once its client may no longer use it. failed tells that the last
// check could not find out.
func (g *Gateway) keepLease(c *connstate.Connection, failed bool) {
	time.AfterFunc(leaseInterval/2+rand.N(leaseInterval/2), func() { // spread, as many may have come at once
		opts, credentials := &g.now.Load().opts, c.Credentials()
		if c.State() == connstate.Closed || opts.Authenticate == nil || !opts.Reauthenticate {
			return
		}
		principal, err := opts.Authenticate(&http.Request{Header: http.Header{"Authorization": {credentials}}, URL: new(url.URL)})
		if err == nil && principal != c.Client().Principal {
			err = errors.New("the credentials are of another principal now")
		}
		refused, _ := errors.AsType[*front.AuthError](err)
		fails := refused != nil && refused.Status >= http.StatusInternalServerError
		if err == nil || fails && !failed || credentials != c.Credentials() {
			g.keepLease(c, fails)
			return
		}
		reason := connstate.ClosedRevoked
		if refused != nil && refused.Expired {
			reason = connstate.ClosedExpired
		}
		opts.Logger.Info("client no longer authorized", "connectionId", c.ShortID(), "err", err)
		c.Close(reason)
	})
}
