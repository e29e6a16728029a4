package oauth_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/auth/oauth"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// serve runs a gateway with a Resource of the issuer until stop is called.
func (i *issuer) serve(o oauth.Options) (srv *pipetest.Server, log *bytes.Buffer, stop func()) {
	log = new(bytes.Buffer)
	up := upstream.Handle(func(_ context.Context, msg json.RawMessage) any {
		m, _ := jsonrpc.Parse(msg)
		return jsonrpc.NewResult(m.ID, []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"test","version":"1"}}`))
	})
	logger := slog.New(slog.NewTextHandler(log, nil))
	options := func(o oauth.Options) gateway.Options {
		return gateway.Options{Prefix: "/docs", Authenticate: i.resource(o).Authenticate, Reauthenticate: true, Logger: logger}
	}
	gw, err := gateway.New(up, options(o))
	ssetest.Must(i.t, err)
	i.reload = func(o oauth.Options) {
		ssetest.Must(i.t, gw.Reconfigure(up, options(o)))
	}
	srv = pipetest.Serve(gw, nil, nil)
	return srv, log, func() {
		ssetest.Want(i.t, "Shutdown", gw.Shutdown(i.t.Context()), nil)
		srv.Stop()
	}
}

// do sends a request with a token.
func do(t *testing.T, srv *pipetest.Server, method, path, token, body string, header ...string) *http.Response {
	t.Helper()
	r := ssetest.Request(t.Context(), method, "http://gw.example.com"+path, body, header...)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := srv.Client.Do(r)
	ssetest.Must(t, err)
	return res
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// A client without a valid token gets a challenge, on both transports.
func TestChallenge(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		srv, _, stop := i.serve(oauth.Options{Scopes: []string{"read"}})
		defer stop()
		for _, test := range []struct {
			method, token string
			status        int
			challenge     string
		}{
			{http.MethodGet, "", 401, ""},
			{http.MethodPost, "", 401, ""},
			{http.MethodGet, i.sign(claims("exp", 1)), 401, `error="invalid_token", `},
			{http.MethodPost, i.sign(claims("scope", "write")), 403, `error="insufficient_scope", `},
		} {
			body := ping
			if test.method == http.MethodGet {
				body = ""
			}
			res := do(t, srv, test.method, "/docs/mcp", test.token, body)
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != test.status || got != `Bearer realm="mcp-sse", `+test.challenge+where || !strings.Contains(string(text), `"jsonrpc"`) {
				t.Errorf("%s: got %d %s %s", test.method, res.StatusCode, got, text)
			}
		}
		i.breaks("introspect", fail)
		res := do(t, srv, http.MethodPost, "/docs/mcp", "opaque", ping)
		_ = res.Body.Close()
		if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || res.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("without introspection: got %d %v", res.StatusCode, res.Header)
		}
	})
}

// A stream ends within a minute after the token that opened it has expired or was revoked, on
// both transports, also if a later request has brought another token. A session of Streamable
// HTTP goes on with that.
func TestStreamEndsWithItsToken(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		srv, log, stop := i.serve(oauth.Options{})
		defer stop()
		i.tokens["opaque"] = claims("active", true, "exp", nil)
		i.tokens["renewed"] = claims("active", true, "exp", nil, "sub", "bob")
		i.tokens["lasting"] = claims("active", true, "exp", nil, "sub", "bob")
		short := i.sign(claims("exp", time.Now().Unix()+60))

		session := func(token string) string {
			res := do(t, srv, http.MethodPost, "/docs/mcp", token, ping[:len(ping)-6]+`tools/list"}`)
			_ = res.Body.Close()
			return res.Header.Get("Mcp-Session-Id")
		}
		expires := open(t, srv, short)
		i.tokens["opaque's second"] = claims("active", true, "exp", nil)
		id := session("opaque")
		revoked := ends(t, do(t, srv, http.MethodGet, "/docs/mcp", "opaque", "", "Mcp-Session-Id", id))
		goOn := func() int {
			res := do(t, srv, http.MethodPost, "/docs/mcp", "opaque's second", ping, "Mcp-Session-Id", id)
			_ = res.Body.Close()
			return res.StatusCode
		}
		ssetest.Want(t, "a later token", goOn(), http.StatusOK)
		res := do(t, srv, http.MethodGet, "/docs/sse", "renewed", "")
		in := bufio.NewReader(res.Body)
		endpoint := ""
		for !strings.HasPrefix(endpoint, "/") {
			line, err := in.ReadString('\n')
			ssetest.Must(t, err)
			endpoint = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		}
		renewed := ends(t, res)
		_ = do(t, srv, http.MethodPost, endpoint, "lasting", ping).Body.Close()
		i.revoke("opaque")
		i.revoke("renewed")

		if d := <-revoked; d > time.Minute {
			t.Errorf("the stream whose token was revoked ended after %s", d)
		}
		if d := <-expires; d > 2*time.Minute {
			t.Errorf("the stream whose token has expired ended after %s", d)
		}
		if d := <-renewed; d > time.Minute {
			t.Errorf("the stream whose messages brought another token ended after %s", d)
		}
		ssetest.Want(t, "the session with a later token", goOn(), http.StatusOK)
		ssetest.WantText(t, "log", log.String(), "reason=expired", "reason=revoked", `msg="client no longer authorized"`, "err=\"the token has expired\"", "is revoked")
		if strings.Contains(log.String(), "opaque") {
			t.Errorf("the log has a token:\n%s", log)
		}
	})
}
