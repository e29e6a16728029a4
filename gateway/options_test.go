package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestNewNeedsAnUpstream(t *testing.T) {
	if _, err := gateway.New(nil, gateway.Options{}); err == nil {
		t.Error("New took no upstream")
	}
}

// One error names all wrong options.
func TestWrongOptions(t *testing.T) {
	wrong := gateway.Options{
		InitializationTimeout: -1, StartTimeout: -1, MaxHandshakeAttempts: -1, RequestTimeout: -1, WriteTimeout: -1,
		ReconnectDelay: -1, MaxMessageBytes: -1, OutboxBytes: -1, GateQueue: -1, MaxPending: -1, ConnectBurst: -1,
		ConnectionTimeout: -1, MaxConnectionsPerIP: -1, MaxInFlight: -1,
		Sessions: "all", Warm: -1, Retry: "always", MaxWaiting: -1,
		MaxRequestTimeout: -2, ForwardHeaders: []string{"a b"}, Name: "Docs",
		Capabilities: json.RawMessage(`[]`), Prefix: "mcp/", EventName: "other",
	}
	_, err := gateway.New(&server{}, wrong)
	if err == nil {
		t.Fatal("New took wrong options")
	}
	lines := strings.Replace(err.Error(), "gateway: ", "\n", 1)
	for name, field := range reflect.ValueOf(wrong).Fields() {
		if field.IsZero() {
			continue
		}
		if n := strings.Count(lines, "\n"+name.Name+": "); n != 1 {
			t.Errorf("the error names %s %d times, want once: %v", name.Name, n, err)
		}
	}
}

// The error of an option that contradicts another names both, in its fields and in
// its text.
func TestContradictoryOptions(t *testing.T) {
	shared, header := gateway.SessionsShared, []string{"X-User"}
	for name, tc := range map[string]struct {
		opts gateway.Options
		want string // "" for none
	}{
		"many that are not shared":   {gateway.Options{SessionsSize: 2}, "SessionsSize: has no effect unless Sessions is shared"},
		"many shared":                {gateway.Options{Sessions: shared, SessionsSize: 2, Warm: 1}, ""},
		"shared, plain transport":    {gateway.Options{Sessions: shared, NoAutoInitialize: true}, "Sessions: contradicts NoAutoInitialize"},
		"shared with capabilities":   {gateway.Options{Sessions: shared, Capabilities: json.RawMessage(`{"roots":{}}`)}, "Capabilities: contradicts Sessions"},
		"shared with none, in words": {gateway.Options{Sessions: shared, Capabilities: json.RawMessage(` { } `)}, ""},
		"shared with headers":        {gateway.Options{Sessions: shared, ForwardHeaders: header}, "ForwardHeaders: contradicts Sessions"},
		"warm, plain transport":      {gateway.Options{Warm: 1, NoAutoInitialize: true}, ""},
		"single path with prefix":    {gateway.Options{SinglePath: true, Prefix: "/a"}, "SinglePath: contradicts Prefix"},
		"headers without request":    {gateway.Options{RequestHeaders: header}, "RequestHeaders: has no effect without PassRequest"},
		"context without request":    {gateway.Options{RequestContext: func(r *http.Request) (context.Context, error) { return r.Context(), nil }}, "RequestContext: has no effect without PassRequest"},
		"warm with request":          {gateway.Options{Warm: 1, PassRequest: true}, "PassRequest: contradicts Warm"},
		"shared with request":        {gateway.Options{Sessions: shared, PassRequest: true}, "PassRequest: contradicts Sessions"},
		"warm with headers":          {gateway.Options{Warm: 1, ForwardHeaders: header}, "Warm: contradicts ForwardHeaders"},
		"a short maximum":            {gateway.Options{RequestTimeout: time.Minute, MaxRequestTimeout: time.Second}, "MaxRequestTimeout: must be at least"},
		"a delay over the wait":      {gateway.Options{AnnounceDelay: 5 * time.Second}, "AnnounceDelay: must be less than"},
		"a long request":             {gateway.Options{RequestTimeout: time.Hour}, ""},
		"one address above all":      {gateway.Options{MaxConnections: 5, MaxConnectionsPerIP: 6}, "MaxConnectionsPerIP: must be at most MaxConnections"},
		"one address, all unlimited": {gateway.Options{MaxConnections: -1, MaxConnectionsPerIP: 6}, ""},
		"CORS for nobody":            {gateway.Options{CORS: true}, "CORS: has no effect without AllowedOrigins"},
		"capabilities of nobody":     {gateway.Options{NoAutoInitialize: true, Capabilities: json.RawMessage(`{"roots":{}}`)}, "Capabilities: has no effect with NoAuto"},
		"never a hang":               {gateway.Options{HangTimeout: -1}, ""},
		"a long name":                {gateway.Options{Name: strings.Repeat("a", 65)}, "Name: must be at most 64"},
		"names":                      {gateway.Options{Name: "0_a-b", ForwardHeaders: header}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := gateway.New(&server{}, tc.opts)
			if g != nil {
				defer g.Shutdown(t.Context())
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "gateway: "+tc.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("got %v, want %q", err, tc.want)
			}
			wrong := gateway.Check(&server{}, tc.opts)
			if (len(wrong) > 0) != (err != nil) {
				t.Errorf("Check: got %v, but New %v", wrong, err)
			}
			for _, e := range wrong {
				if named, ok := errors.AsType[*gateway.OptionError](err); !ok || *named != *e || !strings.Contains(e.Problem, e.Other) {
					t.Errorf("Check: got %+v, but New %v", e, err)
				}
			}
		})
	}
}

// A remote server without shared sessions has nothing to keep warm.
func TestRemoteServerIsNotKeptWarm(t *testing.T) {
	for name, up := range map[string]upstream.Upstream{
		"URL":     upstream.URL{Address: "https://example.com/mcp"},
		"handler": upstream.HTTPHandler(http.NotFoundHandler()),
	} {
		if _, err := gateway.New(up, gateway.Options{Warm: 1}); err == nil || !strings.Contains(err.Error(), "Warm: has no effect on a remote server") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
		g, err := gateway.New(up, gateway.Options{Warm: 1, Sessions: gateway.SessionsShared})
		if err != nil {
			t.Errorf("%s, shared: %v", name, err)
			continue
		}
		if err := g.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestHeadersThatCanBeSet(t *testing.T) {
	for name, free := range map[string]bool{
		"Authorization": true, "x-api-key": true, "X_User": true, "Cookie": true, "Mcpx": true,
		"": false, "a b": false, "a:": false, "é": false, "a\n": false,
		"host": false, "Content-Type": false, "LAST-EVENT-ID": false, "mcp-session-id": false, "MCP-Protocol-Version": false,
	} {
		if err := gateway.CheckHeaderName(name); (err == nil) != free {
			t.Errorf("%q: got %v, want it free: %v", name, err, free)
		}
	}
}

func TestLimitsThatCanBeSwitchedOff(t *testing.T) {
	g, err := gateway.New(&server{}, gateway.Options{
		HeartbeatInterval: -1, AnnounceDelay: -1, SlowRequest: -1, MaxConnections: -1, ConnectRate: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// The defaults are those in the doc comments.
func TestDefaultsAreAsDocumented(t *testing.T) {
	source, err := os.ReadFile("options.go")
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile(`(?m)((?:^\t//.*\n)+)^\t(\w+)\s+\S`)
	documented := map[string]string{}
	for _, m := range field.FindAllStringSubmatch(string(source), -1) {
		text := strings.ReplaceAll(strings.ReplaceAll(m[1], "\t// ", ""), "\n", " ")
		if _, value, ok := strings.Cut(text, "Default "); ok {
			documented[m[2]] = regexp.MustCompile(`^[^.;:]+`).FindString(value)
		}
	}
	defaults := reflect.ValueOf(gateway.Options{}.WithDefaults())
	for f, v := range defaults.Fields() {
		text, ok := documented[f.Name]
		if n, isNumber := number(v); isNumber {
			if want := parseDefault(t, f.Name, text); n != want {
				t.Errorf("%s is %g, documented as %q", f.Name, n, text)
			}
			continue
		}
		if f.Name == "Logger" || f.Name == "Transports" {
			continue // a silent one; all of them
		}
		if f.Name == "Capabilities" {
			if string(v.Bytes()) != text {
				t.Errorf("%s is %s, documented as %q", f.Name, v.Bytes(), text)
			}
			continue
		}
		if ok && !v.IsZero() && text != strconv.Quote(v.String()) {
			t.Errorf("%s is %v, documented as %q", f.Name, v, text)
		}
	}
}

// number returns the value of a numeric option; durations in seconds.
func number(v reflect.Value) (float64, bool) {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return time.Duration(v.Int()).Seconds(), true
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

func parseDefault(t *testing.T, name, text string) float64 {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(text, ",", ""))
	if len(words) == 0 {
		t.Errorf("%s has no documented default", name)
		return -1
	}
	n, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		t.Errorf("%s: default %q: %v", name, text, err)
	}
	unit := 1.0
	if len(words) > 1 {
		unit = map[string]float64{"ms": 1e-3, "s": 1, "MiB": 1 << 20}[words[1]]
	}
	return n * unit
}

func TestGatewaysShareARegistry(t *testing.T) {
	reg := prometheus.NewRegistry()
	for range 2 {
		g, err := gateway.New(&server{}, gateway.Options{Registry: reg})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if err := g.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	families, err := reg.Gather()
	if err != nil || len(families) == 0 {
		t.Errorf("gathered %d families, %v", len(families), err)
	}
}

func TestAdmin(t *testing.T) {
	u := &server{dial: func(_ context.Context, n int) error {
		if n == 1 {
			return errNoServer
		}
		return nil
	}}
	inFakeTime(t, u, gateway.Options{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
		admin := g.Admin()
		get := func(method, path string) (int, string) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(method, path, nil)
			r.Host = "localhost"
			admin.ServeHTTP(w, r)
			return w.Code, strings.TrimSpace(w.Body.String())
		}
		want := func(method, path string, code int, body string) {
			t.Helper()
			if c, b := get(method, path); c != code || !strings.Contains(b, body) {
				t.Errorf("%s %s = %d %.200s, want %d %s", method, path, c, b, code, body)
			}
		}
		want(http.MethodGet, "/healthz", 200, `{"status":"ok"}`)
		want(http.MethodGet, "/readyz", 503, `{"status":"not ready","reason":"initialization failed: the server could not be started or reached"}`)
		time.Sleep(2 * time.Second)
		want(http.MethodGet, "/readyz", 200, `{"status":"ready"}`)
		want(http.MethodHead, "/readyz", 200, "")
		want(http.MethodGet, "/connections", 200, `{"connections":[]}`)
		p := connect(t, g, plain)
		p.post(request("1", "hang"))
		p.want()
		want(http.MethodGet, "/connections", 200, `"id":"`+p.c.ShortID()+`","state":"ready"`)
		want(http.MethodGet, "/connections", 200, `"inFlight":1`)
		if _, body := get(http.MethodGet, "/connections"); strings.Contains(body, p.c.ID()) {
			t.Error("/connections tells the whole id, which is a secret")
		}
		want(http.MethodGet, "/metrics", 200, `mcp_sse_requests_in_flight{transport="sse"} 1`)
		want(http.MethodGet, "/metrics", 200, "go_goroutines")
		want(http.MethodPost, "/healthz", 405, "")
		want(http.MethodGet, "/sse", 404, "")
		g.Drain()
		want(http.MethodGet, "/readyz", 503, `"reason":"shutting down"`)
		want(http.MethodGet, "/healthz", 200, "ok")
	})
}

// TestNumbersBelowZeroAreRefused takes the rule from the comments of Options: where
// a negative number means something, they say so.
func TestNumbersBelowZeroAreRefused(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "options.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && len(f.Names) == 1 {
			docs[f.Names[0].Name] = f.Doc.Text()
		}
		return true
	})
	numbers := 0
	for _, field := range reflect.VisibleFields(reflect.TypeFor[gateway.Options]()) {
		opts := gateway.Defaults()
		value := reflect.ValueOf(&opts).Elem().FieldByIndex(field.Index)
		switch {
		case value.CanInt():
			value.SetInt(-1)
		case value.CanFloat():
			value.SetFloat(-1)
		default:
			continue
		}
		numbers++
		refused := slices.ContainsFunc(gateway.Check(nil, opts), func(e *gateway.OptionError) bool { return e.Option == field.Name })
		if allowed := strings.Contains(docs[field.Name], "negative"); refused == allowed {
			t.Errorf("%s: -1 is refused: %t, and its comment allows it: %t", field.Name, refused, allowed)
		}
	}
	if numbers < 20 {
		t.Errorf("found %d numbers among the options", numbers)
	}
}
