package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// startSeveral starts a gateway with several servers. It returns it and the URL
// of the stream of each.
func startSeveral(t *testing.T, servers map[string]any, flags ...string) (*gateway, map[string]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "servers.json") // YAML too
	body, err := json.Marshal(map[string]any{"servers": servers})
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(file, body, 0o600))
	g := launch(t, append([]string{"--config", file}, flags...)...)
	g.admin = g.awaitMatch("the admin URL", &g.log, adminURL)
	urls := map[string]string{}
	ssetest.Must(t, json.Unmarshal([]byte(g.awaitMatch("the URLs of the streams", &g.log, streamURLs)), &urls))
	if len(urls) != len(servers) {
		t.Fatalf("streams = %v, want one for each server", urls)
	}
	return g, urls
}

// streamURLs is the attribute of the log line that tells where all streams are.
var streamURLs = regexp.MustCompile(`"servers":({[^}]*})`)
