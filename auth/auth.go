// Package auth says who makes a request: by static bearer tokens, or by any function that
// returns a principal or an [Error]. Package auth/oauth does it with the tokens of an OAuth
// issuer; auth/oauthclient gets tokens for requests to remote servers.
package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error is an authentication error whose message may be told to the client.
type Error struct {
	Message string
	// Status is the HTTP status. Default 401.
	Status int
	// Challenge is what follows the realm in WWW-Authenticate: parameters of RFC 6750,
	// section 3, with their names, quotes and commas. Default error="invalid_token" for a
	// request with an Authorization header, else none. A 403 without a Challenge gets no
	// WWW-Authenticate: no other token of the same user would help.
	Challenge string
	// Expired says that a token has expired: the reason of the connections that end with it.
	Expired bool
	// Cause is for the log alone; nil: Message says it all.
	Cause error
}

// Error returns the message, and up to 512 bytes of the cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %.512v", e.Message, e.Cause)
}

// BearerTokens returns a function for gateway.Options.Authenticate that accepts static bearer tokens
// (RFC 6750). tokens has the principal of each token. In place of a token it may have the token's hash, as
// sha256:HEX. The function looks tokens up by their hash, so that the time it takes says nothing about them.
// BearerTokens fails if there are no tokens, one is empty, or one is given twice.
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
			return "", &Error{Message: "authentication required: send Authorization: Bearer <token>"}
		}
		principal, ok := principals[sha256.Sum256([]byte(strings.TrimSpace(token)))]
		if !ok {
			return "", &Error{Message: "the bearer token is not valid"}
		}
		return principal, nil
	}, nil
}
