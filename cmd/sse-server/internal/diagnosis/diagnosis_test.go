package diagnosis_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	mcpgosdk "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greeter is a server with one tool.
func greeter() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "greet"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

func greeterOfMCPGo() *server.MCPServer {
	s := server.NewMCPServer("greeter", "1")
	s.AddTool(mcpgosdk.NewTool("greet"), func(context.Context, mcpgosdk.CallToolRequest) (*mcpgosdk.CallToolResult, error) {
		return mcpgosdk.NewToolResultText(""), nil
	})
	return s
}

// newGateway returns a gateway that the test shuts down.
func newGateway(t *testing.T, o gateway.Options) *gateway.Gateway {
	t.Helper()
	return newGatewayTo(t, gosdk.Server(greeter()), o)
}

func newGatewayTo(t *testing.T, up upstream.Upstream, o gateway.Options) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(up, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = g.Shutdown(ctx)
	})
	return g
}

// serve returns the URL of a server that ends with the test.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// look returns the steps as lines, and whether a client can work there.
func look(t *testing.T, o diagnosis.Options) (string, bool) {
	t.Helper()
	o.Patience, o.Grace = cmp.Or(o.Patience, time.Minute), cmp.Or(o.Grace, time.Minute)
	var lines strings.Builder
	works := diagnosis.Run(t.Context(), o, func(s diagnosis.Step) {
		fmt.Fprintf(&lines, "%s: %s: %s", s.Name, s.Result, s.Detail)
		if s.Remedy != "" {
			fmt.Fprintf(&lines, " -> %s", s.Remedy)
		}
		lines.WriteString("\n")
	})
	http.DefaultClient.CloseIdleConnections()
	return lines.String(), works
}

// wantLines fails the test unless each text is in a line, in order.
func wantLines(t *testing.T, got string, want ...string) {
	t.Helper()
	rest := got
	for _, text := range want {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Errorf("%q is missing, or not in order, in\n%s", text, got)
			return
		}
		rest = after
	}
}

// Servers of each kind work, with the transports that they have.
func TestServersThatWork(t *testing.T) {
	t.Parallel()
	sdk, old := greeter(), greeterOfMCPGo()
	both := []string{"TCP: ok", "Streamable HTTP: initialize: ok: greeter 1, MCP 2025-11-25", "Streamable HTTP: a call: ok: 1 tool", "Streamable HTTP: GET: ok", "Streamable HTTP: first event: ok: the stream had its first event after", "Streamable HTTP: DELETE: ok",
		"HTTP+SSE: endpoint: ok: POST to http", "HTTP+SSE: initialize: ok: greeter 1, MCP ", "HTTP+SSE: a call: ok: 1 tool", "HTTP+SSE: mcp-response: ok", "HTTP+SSE: a call without initialize: ok"}
	streamable := []string{"Streamable HTTP: initialize: ok: greeter 1", "Streamable HTTP: a call: ok: 1 tool", "HTTP+SSE: endpoint: not served"}
	sse := []string{"Streamable HTTP: initialize: not served", "HTTP+SSE: endpoint: ok", "HTTP+SSE: a call: ok: 1 tool"}
	grace := map[string]time.Duration{"go-sdk, JSON": time.Millisecond, "mcp-go, streamable": time.Millisecond} // of those that send no event
	for name, test := range map[string]struct {
		h    http.Handler
		path string
		want []string
	}{
		"the gateway":         {newGateway(t, gateway.Options{}), "/mcp", both},
		"the gateway at /sse": {newGateway(t, gateway.Options{}), "/sse", both},
		"go-sdk, streamable":  {mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil), "/mcp", streamable},
		"go-sdk, stateless":   {mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: true}), "/mcp", streamable},
		"go-sdk, JSON":        {mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{JSONResponse: true}), "/mcp", streamable},
		"go-sdk, HTTP+SSE":    {mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdk }, nil), "/sse", sse},
		"mcp-go, streamable":  {server.NewStreamableHTTPServer(old), "/mcp", streamable},
		"mcp-go, HTTP+SSE":    {server.NewSSEServer(old), "/sse", sse},
	} {
		got, works := look(t, diagnosis.Options{URL: serve(t, test.h) + test.path, Grace: grace[name]})
		if !works {
			t.Errorf("%s: a client could not work there", name)
		}
		wantLines(t, name+"\n"+got, test.want...)
	}
}

// Each fault is named, with its remedy.
func TestFaults(t *testing.T) {
	protected := newGateway(t, gateway.Options{Authenticate: func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") != "Bearer right" {
			return "", &auth.Error{Message: "a token is needed"}
		}
		return "ada", nil
	}})
	status := func(code int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Location", "https://new.example.com/mcp")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
	}
	mixed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: https://%s/post\n\n", r.Host)
	})
	secure := httptest.NewTLSServer(newGateway(t, gateway.Options{}))
	defer secure.Close()
	broken := newGatewayTo(t, stdio.Command{Path: "/does/not/exist"}, gateway.Options{})
	ended := httptest.NewServer(http.NotFoundHandler())
	ended.Close()
	plain := serve(t, newGateway(t, gateway.Options{}))
	registry := prometheus.NewRegistry()
	several, err := gateway.NewServers(newGateway(t, gateway.Options{Name: "a", Prefix: "/a", Registry: registry}), newGateway(t, gateway.Options{Name: "b", Prefix: "/b", Registry: registry}))
	if err != nil {
		t.Fatal(err)
	}
	quoting := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no \"bad\" key"}}`)
	})
	for name, test := range map[string]struct {
		o    diagnosis.Options
		want []string
	}{
		"no URL":           {diagnosis.Options{URL: "nonsense"}, []string{"URL: failed: this is not a URL"}},
		"no name":          {diagnosis.Options{URL: "http://no-such-host.invalid/mcp"}, []string{"DNS: failed: no-such-host.invalid: ", "this name", " -> check the name"}},
		"nobody listens":   {diagnosis.Options{URL: ended.URL + "/mcp"}, []string{"TCP: failed", "nothing listens there (connection refused) -> start the server"}},
		"plain port":       {diagnosis.Options{URL: strings.Replace(plain, "http", "https", 1) + "/mcp"}, []string{"TLS: failed: the server does not speak TLS there, but plain HTTP -> use http://"}},
		"own certificate":  {diagnosis.Options{URL: secure.URL + "/mcp"}, []string{"TLS: failed: the certificate is of an authority", "NODE_EXTRA_CA_CERTS"}},
		"TLS port":         {diagnosis.Options{URL: strings.Replace(secure.URL, "https", "http", 1) + "/mcp"}, []string{"HTTP: failed: the server speaks TLS there, and no plain HTTP -> use https://"}},
		"no token":         {diagnosis.Options{URL: serve(t, protected) + "/mcp"}, []string{"authentication: failed: HTTP 401: a token is needed -> give a token: --header 'Authorization: Bearer TOKEN'"}},
		"wrong token":      {diagnosis.Options{URL: serve(t, protected) + "/mcp", Header: http.Header{"Authorization": {"Bearer wrong"}}}, []string{"HTTP 401", "-> the token is not accepted"}},
		"wrong path":       {diagnosis.Options{URL: plain + "/api"}, []string{"authentication: not tried: there was only HTTP 404\n", "not served: HTTP 404", "MCP: failed: no transport is served at /api -> use " + plain + "/mcp"}},
		"no path":          {diagnosis.Options{URL: plain}, []string{"MCP: failed: no transport is served at / -> use " + plain + "/mcp"}},
		"several servers":  {diagnosis.Options{URL: serve(t, several) + "/mcp"}, []string{"MCP: failed: no transport of MCP is served at", "-> take one of the paths that the server names: /a/mcp, /b/mcp\n"}},
		"quotes":           {diagnosis.Options{URL: serve(t, quoting) + "/mcp"}, []string{`the server answers with an error: no "bad" key -> run`}},
		"quotes, refused":  {diagnosis.Options{URL: serve(t, status(503, `{"error":{"message":"no \"bad\"\nkey"}}`)) + "/mcp"}, []string{`failed: HTTP 503: no "bad" key -> `}},
		"nothing there":    {diagnosis.Options{URL: serve(t, status(404, "")) + "/mcp"}, []string{"initialize: not served: HTTP 404\n", "MCP: failed: no transport of MCP is served at", "check the path"}},
		"redirect":         {diagnosis.Options{URL: serve(t, status(301, "")) + "/mcp"}, []string{"failed: HTTP 301 leads to https://new.example.com/mcp -> use that URL"}},
		"bad gateway":      {diagnosis.Options{URL: serve(t, status(502, "<html>")) + "/mcp"}, []string{"failed: HTTP 502 -> the proxy does not reach the server"}},
		"web page":         {diagnosis.Options{URL: serve(t, status(200, "<html>")) + "/mcp"}, []string{"authentication: not tried: there was only a web page\n", "failed: there is a web page -> check the path"}},
		"broken server":    {diagnosis.Options{URL: serve(t, broken) + "/mcp"}, []string{"failed: the server answers with an error: ", "/does/not/exist", "-> run sse-server check --start"}},
		"another scheme":   {diagnosis.Options{URL: serve(t, mixed) + "/sse"}, []string{"HTTP+SSE: endpoint: failed: the event endpoint names https://", ": clients do not post to another scheme -> have the proxy send X-Forwarded-Proto"}},
		"page not allowed": {diagnosis.Options{URL: plain + "/mcp", Origin: "https://app.example.com"}, []string{"Origin: failed: HTTP 403", "-> allow the page: --allowed-origins https://app.example.com", "HTTP+SSE: a call: ok", "CORS: not tried: the Origin was refused\n"}},
	} {
		got, works := look(t, test.o)
		if works {
			t.Errorf("%s: a client can work there:\n%s", name, got)
		}
		wantLines(t, name+"\n"+got, test.want...)
	}
	for name, o := range map[string]diagnosis.Options{
		"right token":            {URL: serve(t, protected) + "/mcp", Header: http.Header{"Authorization": {"Bearer right"}}},
		"a page that is allowed": {URL: serve(t, newGateway(t, gateway.Options{AllowedOrigins: []string{"https://app.example.com"}})) + "/mcp", Origin: "https://app.example.com"},
	} {
		if got, works := look(t, o); !works {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

// hostOf sends requests with another Host, as a proxy does that does not pass it.
func hostOf(t *testing.T, to, host string) string {
	t.Helper()
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.Host = host
	}, FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}})
}

// A proxy that passes another Host is found.
func TestWrongHost(t *testing.T) {
	gw := serve(t, newGateway(t, gateway.Options{AllowedHosts: []string{"gw.example.com"}}))
	got, works := look(t, diagnosis.Options{URL: hostOf(t, gw, "internal.example.com") + "/mcp"})
	if works {
		t.Error("a client can work there")
	}
	wantLines(t, got, "HTTP: ok", "Host: failed: HTTP 403", "-> allow the name: --allowed-hosts 127.0.0.1; or have the proxy pass the Host")
}

// held is a proxy that holds a response back until it has all of it, as buffering does.
func held(t *testing.T, to string) string {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), r.Method, to+r.URL.RequestURI(), r.Body)
		if err != nil {
			panic(err)
		}
		request.Header = r.Header
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		for name, values := range response.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(body)
	}))
}

// A proxy that holds events back is found.
func TestProxiesThatHoldEventsBack(t *testing.T) {
	t.Parallel()
	gw := serve(t, newGateway(t, gateway.Options{}))
	got, works := look(t, diagnosis.Options{URL: held(t, gw) + "/mcp", Patience: 3 * time.Second, Wait: time.Millisecond})
	if works {
		t.Error("a client can work behind a proxy that holds events back")
	}
	wantLines(t, got, "Streamable HTTP: a call: ok", "Streamable HTTP: GET: failed: the stream did not open in 3s -> a proxy between holds events back", "proxy_buffering off",
		"Streamable HTTP: first event: not tried: the stream did not open\n",
		"Streamable HTTP: a silent stream: not tried: the stream did not open\n",
		"HTTP+SSE: endpoint: failed: no event came in ", " -> a proxy between holds events back")
	sse := greeter()
	got, works = look(t, diagnosis.Options{URL: held(t, serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sse }, nil))) + "/sse", Patience: 3 * time.Second})
	if works {
		t.Error("a client can work behind a proxy that holds events back")
	}
	wantLines(t, got, "HTTP+SSE: endpoint: failed: no event came in 3s -> a proxy between holds events back")
}

// A step that only reads what an earlier one has got has no time of its own.
func TestTimesAreMeasured(t *testing.T) {
	t.Parallel()
	const page = "https://app.example.com"
	gw := serve(t, newGateway(t, gateway.Options{AllowedOrigins: []string{page}}))
	for origin, want := range map[string][]string{
		"":   {"Host", "Origin", "authentication", "Streamable HTTP: first event"},
		page: {"Host", "authentication", "Streamable HTTP: first event"},
	} {
		var without []string
		diagnosis.Run(t.Context(), diagnosis.Options{URL: gw + "/mcp", Origin: origin, Patience: time.Minute, Grace: time.Minute}, func(s diagnosis.Step) {
			if s.Milliseconds == 0 {
				without = append(without, s.Name)
			}
		})
		if !slices.Equal(without, want) {
			t.Errorf("with the Origin %q: these have no time: %q, want %q", origin, without, want)
		}
	}
}

// No step shows a password, a query or what a server puts into addresses.
func TestStepsShowNoSecrets(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"endpoint": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: endpoint\ndata: /messages?session=s3cret\n\n")
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login?next=s3cret", http.StatusFound)
		},
		"bad redirect": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/%zz?s3cret")
			w.WriteHeader(http.StatusFound)
		},
		"metadata": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://u:s3cret@`+r.Host+`/m?s3cret"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
		"a URL in a body": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("x", 298)+"äöü see https://u:s3cret@h.example/p?key=s3cret", http.StatusInternalServerError)
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/mcp" {
				w.WriteHeader(http.StatusNotFound)
			}
		},
		"no event": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: endpoint\ndata: http://h:x/%zz?s3cret\n\n")
		},
	} {
		at := strings.Replace(serve(t, h), "http://", "http://ada:s3cret@", 1)
		lines, _ := look(t, diagnosis.Options{URL: at + "/other?key=s3cret"})
		if strings.Contains(lines, "s3cret") || !utf8.ValidString(lines) {
			t.Errorf("%s: got %q", name, lines)
		}
	}
}

// Parts of the network that work are told too: the addresses of a name, and TLS with a certificate of an authority
// that this machine knows.
func TestNetworkThatWorks(t *testing.T) {
	secure := httptest.NewTLSServer(newGateway(t, gateway.Options{}))
	defer secure.Close()
	system := http.DefaultTransport.(*http.Transport)
	system.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	defer func() { system.TLSClientConfig = nil }()
	plain := serve(t, newGateway(t, gateway.Options{}))
	for url, want := range map[string][]string{
		strings.Replace(plain, "127.0.0.1", "localhost", 1): {"DNS: ok: localhost is ", "127.0.0.1", "TCP: ok: connected to "},
		secure.URL: {"TCP: ok: connected to ", "TLS: ok: TLS 1.3, the certificate is valid until 20"},
	} {
		got, works := look(t, diagnosis.Options{URL: url + "/mcp"})
		if !works {
			t.Errorf("%s: a client could not work there", url)
		}
		wantLines(t, url+"\n"+got, want...)
	}
}
