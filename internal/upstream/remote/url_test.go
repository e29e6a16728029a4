package remote_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestCheckOfAURL(t *testing.T) {
	good := remote.URL{Address: "https://example.com/mcp", Header: http.Header{"X-Key": {"a b\tc"}}}
	for name, tt := range map[string]struct {
		change func(*remote.URL)
		want   string // empty: nothing is wrong
	}{
		"good":                {func(*remote.URL) {}, ""},
		"empty":               {func(u *remote.URL) { u.Address = "" }, "must begin with http:// or https://"},
		"other scheme":        {func(u *remote.URL) { u.Address = "ftp://example.com" }, "must begin with http:// or https://"},
		"no host":             {func(u *remote.URL) { u.Address = "http:///mcp" }, "names no host"},
		"no URL":              {func(u *remote.URL) { u.Address = "http://u:hunter2@[/" }, "is not a URL"},
		"hash in a password":  {func(u *remote.URL) { u.Address = "http://u:12#hunter2@h/" }, "has a #"},
		"slash in a password": {func(u *remote.URL) { u.Address = "http://u:hunter2/x@h/" }, "is not a URL"},
		"transport":           {func(u *remote.URL) { u.Transport = "stdio" }, `there is no transport "stdio"`},
		"timeout":             {func(u *remote.URL) { u.Client = &http.Client{Timeout: 1} }, "has a Timeout"},
		"header's name":       {func(u *remote.URL) { u.Header = http.Header{"X Key": {"hunter2"}} }, `the header "X Key"`},
		"header's value":      {func(u *remote.URL) { u.Header = http.Header{"X": {"hunter2\n"}} }, "cannot be sent"},
	} {
		u := good
		tt.change(&u)
		err := u.Check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: tells %v", name, err)
		}
		if _, dialErr := u.Dial(t.Context()); err != nil && (dialErr == nil || dialErr.Error() != err.Error()) {
			t.Errorf("%s: Dial gives %v", name, dialErr)
		}
	}
}

// MCP security best practices, token passthrough: nothing of a client's goes on
// unless it was named, and another session has none of it.
func TestOnlyNamedHeadersAreSent(t *testing.T) {
	s := upstreamtest.Serve(t, upstreamtest.Session(nil))
	up := upstreamtest.Streamable(s)
	up.Header = http.Header{"X-Own": {"own"}, "X-Both": {"own"}}
	named := asker.NewContext(t.Context(), &asker.Asker{Header: http.Header{"x-both": {"client"}, "X-More": {"more"}}})
	for _, tt := range []struct {
		ctx        context.Context
		both, more string
	}{{named, "client", "more"}, {t.Context(), "own", ""}} {
		seen := len(s.Seen())
		conn, err := up.Dial(tt.ctx)
		ssetest.Must(t, err)
		k := upstreamtest.NewTalk(t, conn)
		k.Send(upstreamtest.Initialize)
		k.Recv()
		_ = conn.Close()
		for _, v := range s.Seen()[seen:] {
			if got := v.Header; got.Get("X-Own") != "own" || strings.Join(got.Values("X-Both"), ",") != tt.both || got.Get("X-More") != tt.more {
				t.Errorf("%s %s has %v", v.Method, v.Body, got)
			}
		}
	}
}

func TestRedirectsAreFollowedWithinTheOrigin(t *testing.T) {
	other := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {})
	for name, tt := range map[string]struct {
		to   string
		code int
		ok   bool
	}{
		"path":             {"/moved", 307, true},
		"permanent":        {"/moved", 308, true},
		"method is lost":   {"/moved", 302, false},
		"see other":        {"/moved", 303, false},
		"another origin":   {other.URL + "/moved", 307, false},
		"round and round":  {"/mcp", 307, false},
		"another protocol": {"https://127.0.0.1/moved", 308, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if r.URL.Path != "/moved" {
					http.Redirect(w, r, tt.to, tt.code)
					return
				}
				upstreamtest.Session(nil)(w, r, m)
			})
			for _, client := range []*http.Client{nil, {}, {CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}} {
				up := upstreamtest.Streamable(s)
				up.Header = http.Header{"Authorization": {"Bearer hunter2"}}
				up.Client = client
				k := upstreamtest.DialTalk(t, up)
				k.Send(upstreamtest.Initialize)
				got, _ := k.Recv()
				if ok := got == upstreamtest.InitResult; ok != tt.ok || !ok && !strings.Contains(got, "the server redirects to ") {
					t.Errorf("got %s", got)
				}
				_ = k.Conn.Close()
			}
		})
	}
	if got := other.Seen(); len(got) > 0 {
		t.Errorf("the other origin got %+v", got)
	}
}

func TestPlaceTellsNoSecret(t *testing.T) {
	for address, want := range map[string]string{
		"https://mcp.example.com/mcp":                                  "https://mcp.example.com/mcp",
		"http://[::1]:8080/v1/servers/docs/sse":                        "http://[::1]:8080/v1/servers/docs/sse",
		"https://user:secret@a.example/mcp?key=secret":                 "https://a.example/mcp",
		"https://a.example/s/0123456789abcdef0123456789abcdef/mcp?x=1": "https://a.example/s/.../mcp",
		"https://a.example":                                            "https://a.example",
		"http://a b":                                                   "the server's URL",
	} {
		ssetest.Want(t, address, (remote.URL{Address: address}).Place(), want)
	}
}
