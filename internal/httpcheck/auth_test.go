package httpcheck_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestBearerTokens(t *testing.T) {
	authenticate, err := auth.BearerTokens(map[string]string{"token": "someone", "öther-tök€n": "other"})
	ssetest.Must(t, err)
	h := newTransport(t, httpcheck.Options{Authenticate: authenticate})
	const missing, invalid = `Bearer realm="mcp-sse"`, `Bearer realm="mcp-sse", error="invalid_token"`
	for _, test := range []struct{ authorization, challenge string }{
		{"", missing},
		{"Bearer token", ""},
		{"BEARER  token ", ""},
		{"Bearer öther-tök€n", ""},
		{"Bearer", invalid},
		{"Bearer toke", invalid},
		{"Bearer token2", invalid},
		{"Bearer TOKEN", invalid},
		{"Bearer token, Bearer x", invalid},
		{"Basic dG9rZW46dG9rZW4=", invalid},
		{"token", invalid},
		{"Bearer\ttoken", invalid},
		{"Bearer " + strings.Repeat("x", 1<<16), invalid},
	} {
		want := 200
		if test.challenge != "" {
			want = 401
		}
		w := ask(h, "", http.MethodGet, "/t?access_token=token", "", "Authorization", test.authorization) // a token in the query is none
		if w.Code != want || w.Header().Get("WWW-Authenticate") != test.challenge || len(w.Body.String()) > 200 {
			t.Errorf("Authorization %.40q: got %d %.200s, challenge %q, want %q",
				test.authorization, w.Code, w.Body, w.Header().Get("WWW-Authenticate"), test.challenge)
		}
	}
	for _, two := range [][2]string{{"Bearer wrong", "Bearer token"}, {"Bearer token", "Bearer wrong"}} {
		r := httptest.NewRequest(http.MethodGet, "/t", nil)
		r.Header["Authorization"] = two[:]
		if principal, err := authenticate(r); err == nil {
			t.Errorf("two headers: got %s", principal)
		}
	}
	const hash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of test
	hashed, err := auth.BearerTokens(map[string]string{hash: "someone"})
	ssetest.Must(t, err)
	for token, want := range map[string]string{"test": "someone", hash: "", hash[7:]: ""} {
		r := httptest.NewRequest(http.MethodGet, "/t", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		if got, _ := hashed(r); got != want {
			t.Errorf("%s is %q, want %q", token, got, want)
		}
	}
	for _, tokens := range []map[string]string{{hash: "x", "test": "y"}, {"sha256:00": "x"}, nil, {"": "nobody"}, {"a": "x", "": "y"}} {
		if _, err := auth.BearerTokens(tokens); err == nil {
			t.Errorf("%v: no error", tokens)
		}
	}
}

// Only an auth.Error is for the client; what else goes wrong is not.
func TestErrorsOfAuthentication(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("check token: %w", &auth.Error{Message: "the token has expired"}), "the token has expired"},
		{errors.New("dial 10.0.0.7: refused"), "not authenticated"},
	} {
		h := newTransport(t, httpcheck.Options{Authenticate: func(*http.Request) (string, error) { return "", test.err }})
		w := ask(h, "", http.MethodGet, "/t", "")
		if got := message(w.Body.String()); w.Code != http.StatusUnauthorized || got != test.want {
			t.Errorf("%v: got %d %q, want %q", test.err, w.Code, got, test.want)
		}
	}
}

// A 403 for a known principal asks for no other token: clients would ask for one again and again.
func TestForbiddenHasNoChallenge(t *testing.T) {
	for challenge, want := range map[string]string{"": "", `error="insufficient_scope"`: `Bearer realm="mcp-sse", error="insufficient_scope"`} {
		refusal := &auth.Error{Status: http.StatusForbidden, Message: "bob may not", Challenge: challenge}
		h := newTransport(t, httpcheck.Options{Authenticate: func(*http.Request) (string, error) { return "", refusal }})
		w := ask(h, "", http.MethodGet, "/t", "", "Authorization", "Bearer token")
		if got := w.Header().Get("WWW-Authenticate"); w.Code != http.StatusForbidden || got != want || message(w.Body.String()) != "bob may not" {
			t.Errorf("got %d %s and the challenge %q, want %q", w.Code, w.Body, got, want)
		}
		ssetest.Want(t, "counted", h.count(t, http.MethodGet, "auth"), 1)
	}
}
