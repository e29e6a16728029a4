package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// startSeveral starts a gateway with several servers. It returns it and the URL
// of the stream of each.
func startSeveral(t *testing.T, servers map[string]any, flags ...string) (*gateway, map[string]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "servers.json") // YAML too
	body, err := json.Marshal(map[string]any{"servers": servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	g := launch(t, append([]string{"--config", file}, flags...)...)
	g.admin = g.awaitMatch("the admin URL", &g.log, adminURL)
	urls := map[string]string{}
	if err := json.Unmarshal([]byte(g.awaitMatch("the URLs of the streams", &g.log, streamURLs)), &urls); err != nil {
		t.Fatalf("URLs of the streams: %v", err)
	}
	if len(urls) != len(servers) {
		t.Fatalf("streams = %v, want one for each server", urls)
	}
	return g, urls
}

// streamURLs is the attribute of the log line that tells where all streams are.
var streamURLs = regexp.MustCompile(`"servers":({[^}]*})`)

// readyz returns the status of the readiness of one server.
func (g *gateway) readyz(query string) int {
	g.t.Helper()
	return status(g.t, newHTTP(g.t), http.MethodGet, g.admin+"/readyz"+query)
}

// Two servers work in their own ways, one cannot start, one dies at once and one
// is not there: those that work do not notice.
func TestServerThatIsDownDoesNotTouchTheOthers(t *testing.T) {
	t.Parallel()
	gone := startProgram(t, nil, built(t, "everything"), "-transport", "streamable")
	gone.kill()
	g, urls := startSeveral(t, map[string]any{
		"each":    map[string]any{"command": fake(t)[1:]},
		"shared":  map[string]any{"command": fake(t)[1:], "sessions": "shared", "warm": 1},
		"remote":  map[string]any{"url": startProgram(t, nil, built(t, "everything"), "-transport", "stateless").url},
		"dies":    map[string]any{"command": fake(t, "--exit")[1:], "initialization-timeout": "1s"},
		"missing": map[string]any{"command": []string{"/no/such/program"}, "initialization-timeout": "1s"},
		"gone":    map[string]any{"url": gone.url, "initialization-timeout": "1s"},
	})
	streams := map[string]*stream{}
	for name, url := range urls {
		streams[name] = openStream(t, url)
	}
	for round := range 3 {
		id := fmt.Sprint(round)
		for _, name := range []string{"dies", "missing", "gone"} {
			got := streams[name].request(id, "tools/list", "{}")
			if got.Error == nil || !got.Error.names("initialization_error") {
				t.Errorf("%s: tools/list = %+v (error %v), want an initialization_error", name, got.Result, got.Error)
			}
		}
		for _, name := range []string{"each", "shared", "remote"} {
			if got := streams[name].call(id, "echo", fmt.Sprintf(`{"message":%q}`, name)); got != name {
				t.Errorf("echo of %s = %q", name, got)
			}
		}
	}
	for query, want := range map[string]int{"": 200, "?server=each": 200, "?server=shared": 200, "?server=remote": 200,
		"?server=dies": 503, "?server=missing": 503, "?server=gone": 503, "?server=nobody": 404} {
		if got := g.readyz(query); got != want {
			t.Errorf("/readyz%s = %d, want %d", query, got, want)
		}
	}
}
