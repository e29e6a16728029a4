package front

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// AuthError is an authentication error whose message may be told to the client.
type AuthError struct {
	Message string
	// Status is the HTTP status. Default 401.
	Status int
	// Challenge is what follows the realm in WWW-Authenticate: parameters of RFC 6750,
	// section 3, with their names, quotes and commas. Default error="invalid_token" for a
	// request with an Authorization header, else none.
	Challenge string
	// Expired says that a token has expired: the reason of the connections that end with it.
	Expired bool
	// Cause is for the log alone; nil: Message says it all.
	Cause error
}

// Error returns the message, and up to 512 bytes of the cause.
func (e *AuthError) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %.512v", e.Message, e.Cause)
}

// BearerTokens returns an authentication by static bearer tokens (RFC 6750),
// from token to principal, for the Authenticate option. It looks tokens up by their
// hash, so that its time says nothing about them. A token can be given as sha256:HEX, its
// hash. It fails for no tokens at all, for an empty one, and for one given twice.
func BearerTokens(tokens map[string]string) (func(*http.Request) (string, error), error) {
	if len(tokens) == 0 {
		return nil, errors.New("bearer tokens: there are none")
	}
	principals := make(map[[sha256.Size]byte]string, len(tokens))
	for token, principal := range tokens {
		if token == "" {
			return nil, errors.New("bearer tokens: a token is empty")
		}
		sum := sha256.Sum256([]byte(token))
		if hash, ok := strings.CutPrefix(token, "sha256:"); ok {
			if n, err := hex.Decode(sum[:], []byte(hash)); err != nil || n != len(sum) {
				return nil, errors.New("bearer tokens: sha256: without 64 hexadecimal digits")
			}
		}
		if _, twice := principals[sum]; twice {
			return nil, errors.New("bearer tokens: a token is there twice")
		}
		principals[sum] = principal
	}
	return func(r *http.Request) (string, error) {
		scheme, token, _ := strings.Cut(strings.Join(r.Header["Authorization"], ", "), " ") // several are no token
		if !strings.EqualFold(scheme, "Bearer") {
			return "", &AuthError{Message: "authentication required: send Authorization: Bearer <token>"}
		}
		principal, ok := principals[sha256.Sum256([]byte(strings.TrimSpace(token)))]
		if !ok {
			return "", &AuthError{Message: "the bearer token is not valid"}
		}
		return principal, nil
	}, nil
}

// challenge answers a request that Options.Authenticate refused with err: 401 or the status
// of an AuthError, what to send (RFC 6750, section 3), and a JSON-RPC error body. The body
// has the message of an AuthError, and nothing of any other error.
func (f *Front) challenge(w http.ResponseWriter, r *http.Request, err error) {
	known, ok := errors.AsType[*AuthError](err)
	if !ok {
		known = &AuthError{Message: "not authenticated"}
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
	if status < http.StatusInternalServerError {
		w.Header().Add("WWW-Authenticate", value)
		w.Header().Set("Connection", "close") // a stranger keeps none
	} else {
		why.RetryAfter = 5 * time.Second
	}
	f.log(r, status, metrics.RejectedAuth, known.Error())
	f.RefuseMessage(w, r, why)
}

// Credentials returns the Authorization header of a request; "" without Options.Reauthenticate.
func (f *Front) Credentials(r *http.Request) string {
	if !f.opts.Reauthenticate {
		return ""
	}
	return strings.Clone(r.Header.Get("Authorization")) // not a part of the whole head
}

// Renew makes a request that has been admitted the newest one of its connection.
func (f *Front) Renew(c *connstate.Connection, r *http.Request) { c.Renew(f.Credentials(r)) }
