package gateway_test

import (
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// One error names all wrong options.
func TestWrongOptions(t *testing.T) {
	wrong := gateway.Options{
		InitializationTimeout: -1, StartTimeout: -1, RequestTimeout: -1, MaxMessageBytes: -1,
		Sessions: 9, ErrorDetails: 9, Page: 9, Transports: []gateway.Transport{9}, ForwardHeaders: []string{"a b"}, Name: "Docs",
		Prefix: "mcp/", AllowedOrigins: []string{"https://*.example.com"}, AllowedHosts: []string{"a:80"},
		PassRequest: &gateway.PassRequest{Headers: []string{"a b"}},
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
		equal(t, "times that the error names "+name.Name, strings.Count(lines, "\n"+name.Name+": "), 1)
	}
}

// The error of an option that contradicts another, or the upstream, names both.
func TestContradictoryOptions(t *testing.T) {
	shared, header := gateway.SessionsShared, []string{"X-User"}
	remote, ofPrincipal := upstream.URL{Address: "https://example.com/mcp"}, upstream.Command{Path: "x", PrincipalEnv: "P"}
	for name, tc := range map[string]struct {
		up   upstream.Upstream
		opts gateway.Options
		want string // "" for none
	}{
		"nothing to serve":           {nil, gateway.Options{}, "no upstream"},
		"warm URL":                   {remote, gateway.Options{Warm: 1}, "Warm: has no effect on a remote server"},
		"warm HTTP handler":          {upstream.HTTPHandler(http.NotFoundHandler()), gateway.Options{Warm: 1}, "Warm: has no effect on a remote server"},
		"warm and shared URL":        {remote, gateway.Options{Warm: 1, Sessions: shared}, ""},
		"warm for principals":        {ofPrincipal, gateway.Options{Warm: 1}, "Warm: contradicts PrincipalEnv"},
		"the same, by a pointer":     {&ofPrincipal, gateway.Options{Warm: 1}, "Warm: contradicts PrincipalEnv"},
		"shared, plain transport":    {&server{}, gateway.Options{Sessions: shared, NoAutoInitialize: true}, "Sessions: contradicts NoAutoInitialize"},
		"shared with headers":        {&server{}, gateway.Options{Sessions: shared, ForwardHeaders: header}, "ForwardHeaders: contradicts Sessions"},
		"warm, plain transport":      {&server{}, gateway.Options{Warm: 1, NoAutoInitialize: true}, ""},
		"an unknown mode":            {&server{}, gateway.Options{Sessions: 9}, `Sessions: must be one of "per-connection", "shared"`},
		"an unknown transport":       {&server{}, gateway.Options{Transports: []gateway.Transport{9}}, `Transports: must be one of "sse", "streamable", "stdio"`},
		"single path with prefix":    {&server{}, gateway.Options{SinglePath: true, Prefix: "/a"}, "SinglePath: contradicts Prefix"},
		"nothing served":             {&server{}, gateway.Options{Transports: []gateway.Transport{}}, "Transports: must name at least one"},
		"a short key":                {&server{}, gateway.Options{IDKey: make([]byte, 31)}, "IDKey: must have at least 32 bytes"},
		"a cluster without a key":    {&server{}, gateway.Options{Cluster: (&replicas{}).join()}, "Cluster: needs an IDKey"},
		"warm with request":          {&server{}, gateway.Options{Warm: 1, PassRequest: &gateway.PassRequest{}}, "PassRequest: contradicts Warm"},
		"shared with request":        {&server{}, gateway.Options{Sessions: shared, PassRequest: &gateway.PassRequest{}}, "PassRequest: contradicts Sessions"},
		"warm with headers":          {&server{}, gateway.Options{Warm: 1, ForwardHeaders: header}, "Warm: contradicts ForwardHeaders"},
		"a selection of a view":      {new(compose.View), gateway.Options{Select: &compose.Selection{}}, "Select: has no effect in front of a view: give its members the rules"},
		"warm view":                  {new(compose.View), gateway.Options{Warm: 1}, "Warm: has no effect in front of a view: give it to the gateways of its members"},
		"shared view":                {new(compose.View), gateway.Options{Sessions: shared}, "Sessions: a view has a session for each client"},
		"a long request":             {&server{}, gateway.Options{RequestTimeout: time.Hour}, ""},
		"one address above all":      {&server{}, gateway.Options{MaxConnections: 5, MaxConnectionsPerIP: 6}, "MaxConnectionsPerIP: must be at most MaxConnections"},
		"one address, all unlimited": {&server{}, gateway.Options{MaxConnections: -1, MaxConnectionsPerIP: 6}, ""},
		"messages that fill memory":  {&server{}, gateway.Options{MaxMessageBytes: 129 << 20}, "MaxMessageBytes: must be at most 134217728"},
		"a long name":                {&server{}, gateway.Options{Name: strings.Repeat("a", 65)}, "Name: must be at most 64"},
		"names":                      {&server{}, gateway.Options{Name: "0_a-b", ForwardHeaders: header}, ""},
		"limits that are off": {&server{}, gateway.Options{HeartbeatInterval: -1, IdleTimeout: -1, MaxConnections: -1, MaxConnectionsPerIP: -1,
			ConnectRate: -1, MaxInFlight: -1, Warm: -1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := gateway.New(tc.up, tc.opts)
			if g != nil {
				defer g.Shutdown(t.Context())
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "gateway: "+tc.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A server at which each principal has a login of its own needs principals, and a session for each.
func TestOwnLoginsNeedPrincipals(t *testing.T) {
	const address = "https://mcp.example.com/mcp"
	up := remote.URL{Address: address, Credentials: login.Credentials{Server: address, Own: login.Own{Page: "https://gw.example.com/login"}}}
	known := func(*http.Request) (string, error) { return "alice", nil }
	for name, tc := range map[string]struct {
		opts gateway.Options
		want string
	}{
		"with principals": {gateway.Options{Authenticate: known}, ""},
		"without":         {gateway.Options{}, "Authenticate: without it nobody has a login of its own"},
		"shared":          {gateway.Options{Authenticate: known, Sessions: gateway.SessionsShared}, "Sessions: a shared session is not for principals"},
		"warm":            {gateway.Options{Authenticate: known, Warm: 1}, "Warm: has no effect on a remote server"},
	} {
		g, err := gateway.New(up, tc.opts)
		if g != nil {
			ssetest.Must(t, g.Shutdown(t.Context()))
		}
		if tc.want == "" {
			ssetest.Must(t, err)
			continue
		}
		ssetest.WantText(t, name, err, tc.want)
	}
}

// Settings that the options leave open follow from those that they have.
func TestDerivedSettings(t *testing.T) {
	s := gateway.SettingsOf(gateway.Options{
		RequestTimeout: 20 * time.Second, StartTimeout: 10 * time.Second, IdleTimeout: time.Hour,
		MaxConnections: 7, Warm: 3, ConnectRate: 2.5,
	})
	got := []any{s.MaxRequestTimeout, s.InitializeTimeout, s.StreamTimeout, s.SessionTimeout, s.MaxSessions, s.ConnectBurst}
	want := []any{200 * time.Second, 30 * time.Second, time.Hour, time.Hour, 10, 5}
	equal(t, "settings", got, want)
	s = gateway.SettingsOf(gateway.Options{})
	got = []any{s.AnnounceDelay, s.MaxRequestTimeout, s.InitializeTimeout, s.StreamTimeout, s.SessionTimeout, s.MaxSessions, s.MaxHeldBytes}
	want = []any{100 * time.Millisecond, 10 * time.Minute, 50 * time.Second, time.Duration(0), 10 * time.Minute, 10_000, int64(512 << 20)}
	equal(t, "by default", got, want)
	if s = gateway.SettingsOf(gateway.Options{IdleTimeout: -1, MaxConnections: -1}); s.StreamTimeout != 0 || s.SessionTimeout >= 0 || s.MaxSessions != 0 {
		t.Errorf("switched off: got %v, %v, %v", s.StreamTimeout, s.SessionTimeout, s.MaxSessions)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	if s = gateway.SettingsOf(gateway.Options{}); s.MaxHeldBytes != 256<<20 {
		t.Errorf("with GOMEMLIMIT: got %d bytes, want a quarter of it", s.MaxHeldBytes)
	}
}

func TestHeadersThatCanBeSet(t *testing.T) {
	for name, free := range map[string]bool{
		"Authorization": true, "x-api-key": true, "X_User": true, "Cookie": true, "Mcpx": true,
		"": false, "a b": false, "a:": false, "é": false, "a\n": false,
		"host": false, "Content-Type": false, "LAST-EVENT-ID": false, "mcp-session-id": false, "MCP-Protocol-Version": false,
	} {
		if err := httpcheck.CheckHeaderName(name); (err == nil) != free {
			t.Errorf("%q: got %v, want it free: %v", name, err, free)
		}
	}
}

// The defaults are those in the doc comments.
func TestDefaultsAreAsDocumented(t *testing.T) {
	source, err := os.ReadFile("options.go")
	must(t, err)
	for field, value := range reflect.ValueOf(gateway.Defaults()).Fields() {
		if !field.IsExported() {
			continue
		}
		shown := fmt.Sprint(value)
		switch v := value.Interface().(type) {
		case time.Duration:
			shown = fmt.Sprintf("%g s", v.Seconds())
		case int64:
			shown = fmt.Sprintf("%d MiB", v>>20)
		case gateway.Sessions, gateway.ErrorDetails, gateway.Page: // the name of the constant that has the word
			constant := regexp.MustCompile(`\t(` + value.Type().Name() + `\w+)\b.* // ` + strconv.Quote(shown) + `\n`)
			shown = constant.FindStringSubmatch(string(source))[1]
		case int:
			shown = regexp.MustCompile(`(\d)(\d{3})$`).ReplaceAllString(shown, "$1,$2")
		case float64:
		default:
			continue
		}
		doc := regexp.MustCompile(`((?:\t//.*\n)+)\t` + field.Name + ` `).FindString(string(source))
		doc = strings.Join(strings.Fields(strings.ReplaceAll(doc, "//", "")), " ")
		if !value.IsZero() && !regexp.MustCompile(`Default `+shown+`[.;]`).MatchString(doc) {
			t.Errorf("%s is %s, documented as: %s", field.Name, shown, doc)
		}
	}
}

// The words for a transport are those that connections and metrics have.
func TestTransportsAreThoseOfConnections(t *testing.T) {
	for ours, theirs := range map[gateway.Transport]connstate.Transport{
		gateway.TransportSSE:        connstate.TransportSSE,
		gateway.TransportStreamable: connstate.TransportStreamable,
		gateway.TransportStdio:      connstate.TransportStdio,
	} {
		ssetest.Want(t, "the transport", ours.String(), string(theirs))
	}
}

func TestAdmin(t *testing.T) {
	u := &server{dial: failing(1)}
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
		admin := g.Admin()
		asks(t, admin, "/healthz", 200, `{"status":"ok"}`)
		asks(t, admin, "/readyz", 503, `{"status":"not ready","reason":"the server could not be started or reached"}`)
		time.Sleep(2 * time.Second)
		asks(t, admin, "/readyz", 200, `{"status":"ready"}`)
		asks(t, admin, "HEAD /readyz", 200, "")
		asks(t, admin, "/readyz?server=", 404, "")
		asks(t, admin, "/connections", 200, `{"connections":[]}`)
		p := connect(t, g, plain)
		p.post(request("1", "hang"))
		p.want()
		asks(t, admin, "/connections", 200, `"id":"`+p.c.ShortID()+`","state":"ready"`)
		asks(t, admin, "/connections", 200, `"inFlight":1`)
		if _, body := ask(admin, "/connections"); strings.Contains(body, p.c.ID()) {
			t.Error("/connections tells the whole id, which is a secret")
		}
		asks(t, admin, "/metrics", 200, `mcp_sse_requests_in_flight{transport="sse"} 1`)
		asks(t, admin, "/metrics", 200, "go_goroutines")
		asks(t, admin, "POST /healthz", 405, "")
		asks(t, admin, "/sse", 404, "")
		g.Drain()
		if _, err := g.Registry().Open(plain); err == nil {
			t.Error("a new connection was taken while draining")
		}
		p.post(request("2", "tools/list")) // it keeps those that are open
		p.want(`2 {"session":*`)
		asks(t, admin, "/readyz", 503, `"reason":"shutting down"`)
		asks(t, admin, "/healthz", 200, "ok")
	})
}
