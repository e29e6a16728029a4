package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A remote server is asked with the headers of its options. When it refuses, its status is
// told, and no secret.
func TestServeARemoteServer(t *testing.T) {
	var keys output
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = keys.Write([]byte(r.URL.RawQuery + " " + r.Header.Get("X-Key") + "\n"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(remote.Close)
	p := startWith(t, map[string]string{"KEY": secret}, "--addr", "127.0.0.1:0", "--log-level", "debug", "--error-details", "full",
		"--url", remote.URL+"/mcp?key="+secret, "--header", "X-Key: ${KEY}")
	code, body := get(t, newClient(t, &http.Transport{}), p.base()+"/readyz", "")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "401") {
		t.Errorf("/readyz: got %d %s, want 503 with the status of the remote server", code, body)
	}
	p.stop()
	if want := "key=" + secret + " " + secret + "\n"; !strings.HasPrefix(keys.String(), want) {
		t.Errorf("the remote server got %q, want %q", keys.String(), want)
	}
	if !strings.Contains(p.out.String(), "serves remote, "+remote.URL+"/mcp, at") {
		t.Errorf("the banner does not name the server:\n%s", p.out.String())
	}
	if strings.Contains(body+p.out.String()+p.log.String(), secret) {
		t.Errorf("the secret is in the output:\n%s\n%s%s", body, p.out.String(), p.log.String())
	}
}
