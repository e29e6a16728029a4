package front

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// AuthError is an authentication error whose message may be told to the client.
type AuthError struct{ Message string }

// Error returns the message.
func (e *AuthError) Error() string { return e.Message }

// BearerTokens returns an authentication by static bearer tokens (RFC 6750),
// from token to principal, for the Authenticate option. Tokens are compared in
// constant time. It fails for no tokens at all and for an empty one.
func BearerTokens(tokens map[string]string) (func(*http.Request) (string, error), error) {
	type entry struct {
		hash      [sha256.Size]byte
		principal string
	}
	entries := make([]entry, 0, len(tokens))
	for token, principal := range tokens {
		if token == "" {
			return nil, errors.New("bearer tokens: a token is empty")
		}
		entries = append(entries, entry{sha256.Sum256([]byte(token)), principal})
	}
	if len(entries) == 0 {
		return nil, errors.New("bearer tokens: there are none")
	}
	return func(r *http.Request) (string, error) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", &AuthError{"authentication required: send Authorization: Bearer <token>"}
		}
		hash := sha256.Sum256([]byte(strings.TrimSpace(token)))
		found := -1
		for i := range entries { // all of them: the time must not tell which one matched
			if subtle.ConstantTimeCompare(hash[:], entries[i].hash[:]) == 1 {
				found = i
			}
		}
		if found < 0 {
			return "", &AuthError{"the bearer token is not valid"}
		}
		return entries[found].principal, nil
	}, nil
}
