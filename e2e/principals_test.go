package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestConnectionBelongsToWhoOpenedIt(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("anna:token-of-anna-0123456789\nben:token-of-ben-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, "--auth-tokens-file", file)
	anna := openStream(t, g.url, "Authorization", "Bearer token-of-anna-0123456789")
	if got := anna.call("1", "echo", `{"message":"m"}`); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
	for name, c := range map[string]struct {
		token string
		want  int
	}{"nobody": {"", 401}, "a stranger": {"Bearer nonsense", 401}, "ben": {"Bearer token-of-ben-0123456789", 404}} {
		got := status(t, anna.http, http.MethodPost, anna.endpoint, "Authorization", c.token)
		if got != c.want {
			t.Errorf("POST of %s = %d, want %d", name, got, c.want)
		}
	}
}
