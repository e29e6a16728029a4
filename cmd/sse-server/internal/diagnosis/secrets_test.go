package diagnosis_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// A secret that the user has given is not shown where a server repeats it.
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

// Of headers and queries, only what can be a secret is hidden: its name says so, or it is long. Plain words are
// those of the report too.
func TestPlainWordsAreShown(t *testing.T) {
	t.Parallel()
	at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie", "Apikey", "X-Api-Key", "X-Session", "X-Customer",
			"X-Debug", "X-Auth-Mode", "X-Level", "X-Env", "X-Method", "Accept-Language", "User-Agent"} {
			if values := r.Header[name]; values != nil {
				fmt.Fprintln(w, values)
			}
		}
		if cookie, err := r.Cookie("sid"); err == nil {
			fmt.Fprintln(w, cookie.Value)
		}
		_, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		fmt.Fprintln(w, credentials, r.URL.Query(), "the answer is true and none refused")
	}))
	for name, test := range map[string]struct {
		header http.Header
		query  string
		want   string
	}{
		"a switch":          {http.Header{"X-Debug": {"true"}}, "", "[true]"},
		"a switch of auth":  {http.Header{"X-Auth-Mode": {"none"}}, "", "[none]"},
		"a number":          {http.Header{"X-Level": {"1"}}, "", "[1]"},
		"an environment":    {http.Header{"X-Env": {"production"}}, "", "[production]"},
		"a word of MCP":     {http.Header{"X-Method": {"initialize"}}, "", "[initialize]"},
		"a type":            {http.Header{"Accept-Language": {"en-US,en;q=0.5,de;q=0.1"}}, "", "[en-US,en;q=0.5,de;q=0.1]"},
		"a program":         {http.Header{"User-Agent": {"my-client/1.0 (linux)"}}, "", "[my-client/1.0 (linux)]"},
		"options of a URL":  {nil, "auto=true&event=mcp-response", "map[auto:[true] event:[mcp-response]]"},
		"an empty password": {http.Header{"Authorization": {"Basic YWRhOg=="}}, "", "the answer is true"},
	} {
		if got, _ := look(t, diagnosis.Options{URL: at + "/mcp?" + test.query, Header: test.header}); !strings.Contains(got, test.want) || !strings.Contains(got, "the answer is true and none") {
			t.Errorf("%s: %q is hidden:\n%s", name, test.want, got)
		}
	}
	for name, test := range map[string]struct {
		header http.Header
		query  string
		secret string
	}{
		"a short token":        {http.Header{"Authorization": {"Bearer s3cr"}}, "", "s3cr"},
		"a token alone":        {http.Header{"Authorization": {"s3cr-token"}}, "", "s3cr"},
		"a token of a proxy":   {http.Header{"Proxy-Authorization": {"Basic s3cr"}}, "", "s3cr"},
		"a key":                {http.Header{"X-Api-Key": {"s3cr"}}, "", "s3cr"},
		"a key of numbers":     {http.Header{"Apikey": {"12345678"}}, "", "12345678"},
		"cookies":              {http.Header{"Cookie": {"theme=dark; sid=s3cr"}}, "", "s3cr"},
		"a session":            {http.Header{"X-Session": {"s3cr"}}, "", "s3cr"},
		"an unknown name":      {http.Header{"X-Customer": {"s3cr-7f21"}}, "", "s3cr"},
		"an unknown long name": {http.Header{"X-Customer": {"correct-horse-battery"}}, "", "horse"},
		"a key of a URL":       {nil, "apikey=s3cr", "s3cr"},
		"a URL's token":        {nil, "access_token=s3cr&x=1", "s3cr"},
		"a value of a URL":     {nil, "user=s3cr-7f21", "s3cr"},
		"a query alone":        {nil, "s3cr", "s3cr"},
		"pwd":                  {nil, "pwd=hunter", "hunter"},
		"a passphrase":         {nil, "passphrase=hunter", "hunter"},
		"a PIN":                {nil, "pin=s3cr", "s3cr"},
	} {
		if got, _ := look(t, diagnosis.Options{URL: at + "/mcp?" + test.query, Header: test.header}); strings.Contains(got, test.secret) || !strings.Contains(got, "the answer is true and none") {
			t.Errorf("%s: %q is shown:\n%s", name, test.secret, got)
		}
	}
}

// The texts of a server are shown up to a bound.
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
