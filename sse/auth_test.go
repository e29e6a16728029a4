package sse_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
)

func bearer(t testing.TB) func(*http.Request) (string, error) {
	t.Helper()
	authenticate, err := sse.BearerTokens(map[string]string{"token": "someone", "öther-tök€n": "other"})
	if err != nil {
		t.Fatal(err)
	}
	return authenticate
}

func TestBearerTokens(t *testing.T) {
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{Authenticate: bearer(t)}}})
	const missing, invalid = `Bearer realm="mcp-sse"`, `Bearer realm="mcp-sse", error="invalid_token"`
	for _, test := range []struct {
		authorization []string
		want          int
		challenge     string
	}{
		{nil, 401, missing},
		{[]string{""}, 401, missing},
		{[]string{"Bearer token"}, 200, ""},
		{[]string{"bearer token"}, 200, ""},
		{[]string{"BEARER  token "}, 200, ""},
		{[]string{"Bearer öther-tök€n"}, 200, ""},
		{[]string{"Bearer"}, 401, invalid},
		{[]string{"Bearer "}, 401, invalid},
		{[]string{"Bearer toke"}, 401, invalid},
		{[]string{"Bearer token2"}, 401, invalid},
		{[]string{"Bearer TOKEN"}, 401, invalid},
		{[]string{"Bearer token, Bearer x"}, 401, invalid},
		{[]string{"Basic dG9rZW46dG9rZW4="}, 401, invalid},
		{[]string{"token"}, 401, invalid},
		{[]string{"Bearertoken"}, 401, invalid},
		{[]string{"Bearer\ttoken"}, 401, invalid},
		{[]string{"Bearer \x00"}, 401, invalid},
		{[]string{"Bearer " + strings.Repeat("x", 1<<16)}, 401, invalid},
		{[]string{"Bearer wrong", "Bearer token"}, 401, invalid},
	} {
		for target, status := range map[string]int{"/sse": 200, "/sse/x/message": 404} {
			method := "GET"
			if status == 404 {
				method = "POST"
			}
			w := ask(f, "", method, target, func(r *http.Request) { r.Header["Authorization"] = test.authorization })
			want := status
			if test.want == 401 {
				want = 401
			}
			if w.Code != want || want != 200 && !isRefusal(w.Body.String()) || w.Header().Get("WWW-Authenticate") != test.challenge {
				t.Errorf("%s, Authorization %.40q: got %d %.200s, challenge %q, want %d, %q",
					method, test.authorization, w.Code, w.Body, w.Header().Get("WWW-Authenticate"), want, test.challenge)
			}
			if strings.Contains(w.Body.String(), "toke2") {
				t.Error("the answer repeats the token")
			}
		}
	}
	if n := f.count(t, "mcp_sse_connections_rejected_total", "reason", metrics.RejectedAuth); n != 15 {
		t.Errorf("got %v rejected connections counted, want 15", n)
	}
	if n := f.count(t, "mcp_sse_posts_rejected_total", "reason", metrics.PostAuth); n != 15 {
		t.Errorf("got %v rejected POSTs counted, want 15", n)
	}
}

// A token in the query is none: it would end up in logs.
func TestTokenInTheQueryIsNone(t *testing.T) {
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{Authenticate: bearer(t)}}})
	if w := ask(f, "", "GET", "/sse?access_token=token&token=token", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("got %d", w.Code)
	}
}

func TestBearerTokensWithoutTokens(t *testing.T) {
	for _, tokens := range []map[string]string{nil, {}, {"": "nobody"}, {"a": "x", "": "y"}} {
		if _, err := sse.BearerTokens(tokens); err == nil {
			t.Errorf("%v: no error", tokens)
		}
	}
}

// Only an AuthError is for the client; what else goes wrong is not.
func TestErrorsOfAuthentication(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&sse.AuthError{Message: "the token has expired"}, "the token has expired"},
		{fmt.Errorf("check token: %w", &sse.AuthError{Message: "the token has expired"}), "the token has expired"},
		{errors.New("dial 10.0.0.7: refused"), "not authenticated"},
	} {
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{Authenticate: func(*http.Request) (string, error) { return "", test.err }}}})
		w := ask(f, "", "GET", "/sse", nil)
		e, ok := refusalOf(w.Body.String())
		if w.Code != http.StatusUnauthorized || !ok || e.Message != test.want {
			t.Errorf("%v: got %d %+v, want %q", test.err, w.Code, e, test.want)
		}
	}
}
