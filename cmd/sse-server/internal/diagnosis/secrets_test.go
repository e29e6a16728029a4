package diagnosis_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// What the user has given is not shown where a server repeats it.
func TestRepeatedSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	const basic = "Basic YWRhOmIzY3JldC1QQVNT" // ada:b3cret-PASS
	echo := func(w http.ResponseWriter, r *http.Request) string {
		_, password, _ := r.BasicAuth()
		return fmt.Sprint("invalid: ", r.Header["X-Api-Key"], r.Header["Authorization"], strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
			r.URL.RawQuery, r.URL.Query(), password)
	}
	for name, h := range map[string]http.HandlerFunc{
		"refusal": func(w http.ResponseWriter, r *http.Request) { http.Error(w, echo(w, r), http.StatusForbidden) },
		"refusal, cut": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat("x", 280)+echo(w, r), http.StatusForbidden)
		},
		"description": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer error=%q, error_description=%q", "x", echo(w, r)))
			w.WriteHeader(http.StatusUnauthorized)
		},
		"answer of none": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 190)+echo(w, r))
		},
		"error of server": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":%q}}`, echo(w, r))
		},
		"name of server": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":%q}}}`, echo(w, r))
		},
		"Server": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Server", echo(w, r)) },
	} {
		at := serve(t, h)
		for _, o := range []diagnosis.Options{
			{URL: at + "/mcp?key=a3cret%2BQUERY&a3cret-NAME", Header: http.Header{"Authorization": {"Bearer c3cret TOKEN"}, "X-Api-Key": {"d3cret KEY"}}},
			{URL: at + "/mcp", Header: http.Header{"Authorization": {basic}}},
			{URL: strings.Replace(at, "http://", "http://ada:b3cret%2FPASS@", 1) + "/mcp"},
		} {
			got, _ := look(t, o)
			for _, secret := range []string{"a3c", "b3c", "c3c", "d3c", "YWRh", "QUERY", "PASS", "TOKEN,", "KEY"} {
				if strings.Contains(got, secret) {
					t.Errorf("%s: %s is shown:\n%s", name, secret, got)
				}
			}
		}
	}
}

// What a server says is shown to a bound.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 30_000)
	for name, h := range map[string]http.HandlerFunc{
		"Server":       func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", long) },
		"content type": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", long) },
		"scope": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+long+`"`)
			w.WriteHeader(http.StatusForbidden)
		},
		"body": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) },
	} {
		diagnosis.Run(t.Context(), diagnosis.Options{URL: serve(t, h) + "/mcp"}, func(s diagnosis.Step) {
			if most := 510; len(s.Detail) > most || len(s.Remedy) > most {
				t.Errorf("%s: %s has %d and %d bytes", name, s.Name, len(s.Detail), len(s.Remedy))
			}
		})
	}
}
