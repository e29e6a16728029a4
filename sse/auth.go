package sse

import (
	"net/http"

	"github.com/mcp-sse/mcp-sse/front"
)

// AuthError is a [front.AuthError].
type AuthError = front.AuthError

// BearerTokens is [front.BearerTokens].
func BearerTokens(tokens map[string]string) (func(*http.Request) (string, error), error) {
	return front.BearerTokens(tokens)
}
