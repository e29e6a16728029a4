package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadInputIsRefusedAndTheConnectionGoesOn(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t, fake(t)...).url)
	call := requestJSON("1", "tools/call", callParams("echo", `{"message":"m"}`))
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"empty":              {"", -32700},
		"not JSON":           {"hello", -32700},
		"truncated":          {call[:len(call)-5], -32700},
		"two messages":       {call + call, -32700},
		"NUL":                {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\x00b\"}", -32700},
		"invalid UTF-8":      {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xff\xfeb\"}", -32700},
		"batch":              {"[" + call + "]", -32600},
		"id null":            {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600},
		"id an object":       {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600},
		"no version":         {`{"id":1,"method":"ping"}`, -32600},
		"a string":           {`"ping"`, -32600},
		"result and error":   {`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}`, -32600},
		"method twice":       {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, -32600},
		"10,000 levels":      {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}}`, 0},
		"an id of a million": {requestJSON(`"`+strings.Repeat("i", 1_000_000)+`"`, "ping", "{}"), -32600},
	} {
		status, body := s.post(c.body)
		if c.code == 0 && status == http.StatusAccepted {
			continue // deep nesting may be refused or taken, but must do no harm
		}
		var got struct{ Error rpcError }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%s: body %q: %v", name, body, err)
		}
		if status != http.StatusBadRequest || (c.code != 0 && got.Error.Code != c.code) {
			t.Errorf("%s: %d %s, want 400 with code %d", name, status, body, c.code)
		}
	}
	if got := s.call("99", "echo", `{"message":"still here"}`); got != "still here" {
		t.Errorf("echo = %q, want still here", got)
	}
}

func TestOversizedBodyIsRefusedAndTheConnectionGoesOn(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t).url)
	for name, size := range map[string]int64{"5 MiB": 5 << 20, "100 MB": 100_000_000} {
		status, body, err := s.tryPost(s.endpoint, io.LimitReader(spaces{}, size), "application/json")
		// The server may stop reading before the client has sent it all.
		if err == nil && status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %.200s, want 413", name, status, body)
		}
	}
	if got := s.call("1", "echo", `{"message":"still here"}`); got != "still here" {
		t.Errorf("echo = %q, want still here", got)
	}
}

// spaces is an endless body.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestRequestsOutsideTheContractAreRefused(t *testing.T) {
	t.Parallel()
	g := startGateway(t)
	s := openStream(t, g.url)
	unknown := strings.Replace(s.endpoint, s.id, "00000000-0000-4000-8000-000000000000", 1)
	for _, c := range []struct {
		name, method, url string
		header            []string
		want              int
	}{
		{"unknown connection", "POST", unknown, nil, 404},
		{"text/plain", "POST", s.endpoint, []string{"Content-Type", "text/plain"}, 415},
		{"GET of the endpoint", "GET", s.endpoint, nil, 405},
		{"PUT of the stream", "PUT", g.url, nil, 405},
		{"foreign Origin", "GET", g.url, []string{"Origin", "https://evil.example"}, 403},
		{"foreign Origin of a POST", "POST", s.endpoint, []string{"Origin", "https://evil.example"}, 403},
		{"foreign Host", "GET", g.url, []string{"Host", "evil.example"}, 403},
		{"no such path", "GET", strings.TrimSuffix(g.url, "/sse") + "/nothing", nil, 404},
	} {
		if got := status(t, s.http, c.method, c.url, c.header...); got != c.want {
			t.Errorf("%s: %s %s = %d, want %d", c.name, c.method, c.url, got, c.want)
		}
	}
	if got := s.call("2", "echo", `{"message":"still here"}`); got != "still here" {
		t.Errorf("echo = %q, want still here", got)
	}
}

// status sends a ping with extra headers and returns the answer's status.
func status(t *testing.T, client *http.Client, method, url string, header ...string) int {
	t.Helper()
	var body io.Reader
	if method != http.MethodGet {
		body = strings.NewReader(requestJSON("1", "ping", "{}"))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	_ = resp.Body.Close() // a stream that should not have been opened ends here
	return resp.StatusCode
}

func TestPostAfterCloseIsNotFound(t *testing.T) {
	t.Parallel()
	g := startGateway(t)
	s := openStream(t, g.url)
	s.call("1", "echo", `{"message":"m"}`)
	s.close()
	g.eventually("the closed connection is forgotten", func() bool {
		status, _ := s.post(requestJSON("2", "ping", "{}"))
		return status == http.StatusNotFound
	})
}

func TestDuplicateIDInFlightIsRefused(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t, fake(t)...).url)
	s.accepted(requestJSON("1", "tools/call", callParams("hang", `{"file":"`+filepath.Join(t.TempDir(), "reached")+`"}`)))
	got := s.request("1", "tools/list", "{}")
	if got.Error == nil || got.Error.Code != -32600 {
		t.Errorf("second request with id 1 = %+v (error %v), want -32600", got.Result, got.Error)
	}
}

func TestConnectionLimitNamesItself(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "--max-connections", "1")
	s := openStream(t, g.url)
	resp, err := s.http.Get(g.url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "the limit is 1") {
		t.Errorf("second connection = %s, Retry-After %q, body %s; want 503 that names the limit",
			resp.Status, resp.Header.Get("Retry-After"), body)
	}
}

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
