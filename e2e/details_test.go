package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a server says before it dies is for the operator: with tokens, clients and
// /readyz get the category, and the log gets all. On this machine and without
// tokens it is the developer's best help.
func TestPasswordOfADyingServer(t *testing.T) {
	t.Parallel()
	const password = "swordfish"
	dying := []string{"--max-handshake-attempts", "1", "--initialization-timeout", "20s", "--", "sh", "-c", "echo " + password + " >&2; exit 3"}
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("ada:0123456789abcdef0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args   []string
		header []string
		sees   bool
	}{
		"Local":  {nil, nil, true},
		"Tokens": {[]string{"--auth-tokens-file", file}, []string{"Authorization", "Bearer 0123456789abcdef0123"}, false},
		"Safe":   {[]string{"--error-details", "safe"}, nil, false},
		"Full":   {[]string{"--error-details", "full", "--auth-tokens-file", file}, []string{"Authorization", "Bearer 0123456789abcdef0123"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, append(tc.args, dying...)...)
			s := openStream(t, g.url, tc.header...)
			got := s.request("1", "tools/list", "{}")
			if got.Error == nil || strings.Contains(got.Error.Error(), password) != tc.sees {
				t.Errorf("POST: %v, want the details %v", got.Error, tc.sees)
			}
			hello := s.await("the announcement", func(e event) bool { return strings.Contains(e.Data, `"auto-initialize-`) })
			if strings.Contains(hello.Data, password) != tc.sees {
				t.Errorf("GET: %s, want the details %v", hello.Data, tc.sees)
			}
			for _, path := range []string{"/readyz", "/healthz", "/connections"} {
				if body := g.adminGet(path); strings.Contains(body, password) != (name == "Full" && path == "/readyz") {
					t.Errorf("%s: %s", path, body)
				}
			}
			if name == "Tokens" {
				g.eventually("the refusal of /connections without a token is in the log", func() bool {
					return strings.Contains(g.log.String(), `"client refused","reason":"auth","status":401`)
				})
			}
			g.eventually("the log has what the server said", func() bool { return strings.Contains(g.log.String(), password) })
		})
	}
}

// The end of a connection says how its session started, or did not.
func TestClosedConnectionSaysHowItStarted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server []string
		want   []string
	}{
		"Dying": {[]string{"--max-handshake-attempts", "1", "--", "sh", "-c", "exit 3"}, []string{
			`"reached":"failed"`, `"attempts":1`, `"failures":1`, `"lastFailure":"request_processing start_failed"`,
		}},
		"Works": {fake(t), []string{`"reached":"ready"`, `"attempts":1`, `"failures":0`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, tc.server...)
			s := openStream(t, g.url)
			s.request("1", "tools/list", "{}")
			s.close()
			var line string
			g.eventually("the end of the connection is in the log", func() bool {
				for l := range strings.Lines(g.log.String()) {
					if strings.Contains(l, `"connection closed"`) {
						line = l
					}
				}
				return line != ""
			})
			for _, want := range tc.want {
				if !strings.Contains(line, want) {
					t.Errorf("%s has no %s", line, want)
				}
			}
		})
	}
}
