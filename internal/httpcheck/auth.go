package httpcheck

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// challenge answers a request that Options.Authenticate refused with err: 401 or the status
// of an auth.Error, what to send (RFC 6750, section 3), and a JSON-RPC error body. The body
// has the message of an auth.Error, and nothing of any other error. A 403 without a Challenge says nothing of what to
// send: another token would not help, and clients that are told of one get it again and again.
func (f *Checker) challenge(w http.ResponseWriter, r *http.Request, err error) {
	known, ok := errors.AsType[*auth.Error](err)
	if !ok {
		known = &auth.Error{Message: "not authenticated"}
	}
	status, value := cmp.Or(known.Status, http.StatusUnauthorized), `Bearer realm="mcp-sse"`
	switch {
	case known.Challenge != "":
		value += ", " + known.Challenge
	case r.Header.Get("Authorization") != "":
		value += `, error="invalid_token"`
	}
	why := Refused(status, metrics.RejectedAuth, "%s", known.Message)
	why.Unread = true
	switch {
	case status >= http.StatusInternalServerError:
		why.RetryAfter = 5 * time.Second
	default:
		if status != http.StatusForbidden || known.Challenge != "" {
			w.Header().Add("WWW-Authenticate", value)
		}
		w.Header().Set("Connection", "close") // a stranger keeps none
	}
	f.log(r, status, metrics.RejectedAuth, known.Error())
	f.RefuseMessage(w, r, why)
}

// Credentials returns the Authorization header of a request; "" without Options.Reauthenticate.
func (f *Checker) Credentials(r *http.Request) string {
	if !f.opts.Reauthenticate {
		return ""
	}
	return strings.Clone(r.Header.Get("Authorization")) // not a part of the whole head
}

// Renew makes a request that has been admitted the newest one of its connection. Credentials that another replica has
// checked are checked here too, so that this one knows what they are good for.
func (f *Checker) Renew(c connstate.ForTransport, r *http.Request) {
	if !c.Renew(f.Credentials(r)) {
		return
	}
	if _, forwarded := IsForwarded(r); forwarded && f.opts.Authenticate != nil {
		_, _ = f.opts.Authenticate(r) // the lease ends those that are not good
	}
	c.CredentialsChecked()
}
