package sse_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/scaletest"
	"github.com/mcp-sse/mcp-sse/sse"
)

// Whatever a client sends, the time for it grows with its length alone.
func TestRequestsTakeTimeInProportion(t *testing.T) {
	authenticate, err := sse.BearerTokens(map[string]string{"token": "ann"})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{Authenticate: authenticate, TrustForwardedPrefix: true, MaxMessageBytes: 1 << 30, AllowedOrigins: []string{"https://a.example"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")},
	},
	}})
	for name, prepare := range map[string]func(r *http.Request, n int){
		"hops that are trusted": func(r *http.Request, n int) {
			r.Header.Set("X-Forwarded-For", strings.Repeat("10.1.1.1, ", n)+"10.1.1.1")
		},
		"headers of hops": func(r *http.Request, n int) {
			for range n {
				r.Header.Add("X-Forwarded-For", "10.1.1.1")
			}
		},
		"hops without an address": func(r *http.Request, n int) { r.Header.Set("X-Forwarded-For", strings.Repeat(",", 5*n)) },
		"a long hop":              func(r *http.Request, n int) { r.Header.Set("X-Forwarded-For", strings.Repeat("1:", 5*n)) },
		"a prefix":                func(r *http.Request, n int) { r.Header.Set("X-Forwarded-Prefix", strings.Repeat("/a", 5*n)) },
		"slashes":                 func(r *http.Request, n int) { r.Header.Set("X-Forwarded-Prefix", strings.Repeat("/", 10*n)) },
		"a path": func(r *http.Request, n int) {
			r.URL.Path = "/sse/" + strings.Repeat("%2e/", n)
			r.RequestURI = r.URL.Path
		},
		"a query":        func(r *http.Request, n int) { r.URL.RawQuery = strings.Repeat("event=message&", n) },
		"an origin":      func(r *http.Request, n int) { r.Header.Set("Origin", "http://"+strings.Repeat("a.", 5*n)) },
		"a host":         func(r *http.Request, n int) { r.Host = strings.Repeat("a.", 5*n) },
		"a host's ports": func(r *http.Request, n int) { r.Host = strings.Repeat(":", 10*n) },
		"a token":        func(r *http.Request, n int) { r.Header.Set("Authorization", "Bearer "+strings.Repeat(" x", 5*n)) },
		"a media type": func(r *http.Request, n int) {
			r.Header.Set("Content-Type", "application/json"+strings.Repeat("; a=b", n))
		},
		"a quoted media type": func(r *http.Request, n int) {
			r.Header.Set("Content-Type", `application/json; a="`+strings.Repeat(`\"`, 5*n)+`"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			scaletest.Linear(t, 1000, func(n int) func() {
				r := httptest.NewRequest(http.MethodPost, "/sse/x/message", strings.NewReader("{}"))
				r.RemoteAddr = "10.1.1.1:5"
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
				r.Header.Set("Authorization", "Bearer token")
				r.Header.Set("Content-Type", "application/json")
				prepare(r, n)
				return func() {
					f.ClientAddr(r)
					f.IsLocal(r)
					f.Endpoint(r, "x")
					f.ServeHTTP(httptest.NewRecorder(), r)
				}
			})
		})
	}
}

func TestBodiesTakeTimeInProportion(t *testing.T) {
	for name, body := range map[string]func(n int) string{
		"a long string":  func(n int) string { return `{"jsonrpc":"2.0","method":"m","params":"` + strings.Repeat("x", n) + `"}` },
		"white space":    func(n int) string { return `{"jsonrpc":"2.0","method":"m"` + strings.Repeat("\n", n) + `}` },
		"members":        func(n int) string { return `{"jsonrpc":"2.0","method":"m"` + strings.Repeat(`,"a":1`, n/6) + `}` },
		"a batch":        func(n int) string { return `[` + strings.Repeat(`{"jsonrpc":"2.0","method":"m"},`, n/31) + `{}]` },
		"deep":           func(n int) string { return strings.Repeat("[", n) },
		"a long method":  func(n int) string { return `{"jsonrpc":"2.0","method":"` + strings.Repeat(`\u0061`, n/6) + `"}` },
		"no JSON at all": func(n int) string { return strings.Repeat("x", n) },
	} {
		for _, length := range []string{"known", "unknown"} {
			t.Run(name+"/length "+length, func(t *testing.T) {
				f := newFixture(t, config{sse: sse.Options{Options: front.Options{MaxMessageBytes: 1 << 30}}})
				c, err := f.registry.Open(connstate.Client{})
				if err != nil {
					t.Fatal(err)
				}
				c.Bind(f.backend.Accept(c))
				defer c.Close("client")
				scaletest.Linear(t, 20_000, func(n int) func() {
					text := body(n)
					return func() {
						r := httptest.NewRequest(http.MethodPost, "/sse/"+c.ID()+"/message", strings.NewReader(text))
						r.Header.Set("Content-Type", "application/json")
						if length == "unknown" {
							r.ContentLength = -1
						}
						f.ServeHTTP(httptest.NewRecorder(), r)
					}
				})
			})
		}
	}
}

func TestLinesTakeTimeInProportion(t *testing.T) {
	for name, part := range map[string]string{"line breaks": "\n", "returns": "\r", "colons": ":", "letters": "x"} {
		t.Run(name, func(t *testing.T) {
			scaletest.Linear(t, 100_000, func(n int) func() {
				data := []byte(strings.Repeat(part, n))
				return func() { sse.Line(data) }
			})
		})
	}
}
