package front

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// AuthError is an authentication error whose message may be told to the client.
type AuthError struct{ Message string }

// Error returns the message.
func (e *AuthError) Error() string { return e.Message }

// BearerTokens returns an authentication by static bearer tokens (RFC 6750),
// from token to principal, for the Authenticate option. It looks tokens up by their
// hash, so that its time says nothing about them. It fails for no tokens at all and for
// an empty one.
func BearerTokens(tokens map[string]string) (func(*http.Request) (string, error), error) {
	if len(tokens) == 0 {
		return nil, errors.New("bearer tokens: there are none")
	}
	principals := make(map[[sha256.Size]byte]string, len(tokens))
	for token, principal := range tokens {
		if token == "" {
			return nil, errors.New("bearer tokens: a token is empty")
		}
		principals[sha256.Sum256([]byte(token))] = principal
	}
	return func(r *http.Request) (string, error) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", &AuthError{"authentication required: send Authorization: Bearer <token>"}
		}
		principal, ok := principals[sha256.Sum256([]byte(strings.TrimSpace(token)))]
		if !ok {
			return "", &AuthError{"the bearer token is not valid"}
		}
		return principal, nil
	}, nil
}

// challenge answers a request that Options.Authenticate refused with err: 401, what
// to send (RFC 6750, section 3), and a JSON-RPC error body. The body has the
// message of an AuthError, and nothing of any other error.
func (f *Front) challenge(w http.ResponseWriter, r *http.Request, err error) {
	value, message := `Bearer realm="mcp-sse"`, "not authenticated"
	if r.Header.Get("Authorization") != "" {
		value += `, error="invalid_token"`
	}
	if known, ok := errors.AsType[*AuthError](err); ok {
		message = known.Message
	}
	w.Header().Add("WWW-Authenticate", value)
	f.Refuse(w, r, http.StatusUnauthorized, metrics.RejectedAuth, message)
}
