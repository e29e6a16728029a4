package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// check says for what it waits, and a second signal does not wait for a server that does not end.
func TestCheckSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	p, signals, code := &program{t: t}, make(chan os.Signal), make(chan int, 1)
	m := &Main{
		Args:      []string{"check", "--start", "--close-timeout", "1h", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1000; done"},
		LookupEnv: clitest.Environment(nil), Silence: 1,
		Stdout: &p.out, Stderr: &p.log, Notify: func(...os.Signal) <-chan os.Signal { return signals },
	}
	go func() { code <- m.Run() }() // ends with the second signal
	told := p.log.await(t, 1, "sse-server: sh: starting (")
	if !regexp.MustCompile(`^sse-server: sh: starting \(\d+ s\), for 1m0s at most; Ctrl-C ends it\n$`).MatchString(told) {
		t.Errorf("got %q", told)
	}
	p.log.await(t, 1, `msg="server started"`)
	signals <- syscall.SIGINT
	p.log.await(t, 1, "sse-server: Stopping: waiting for sh to end. The same signal again stops at once.\n")
	signals <- syscall.SIGINT
	ssetest.Want(t, "exit code", <-code, exit.Signal+int(syscall.SIGINT))
}

// The end says for what it waits.
func TestStoppingSaysWhatItWaitsFor(t *testing.T) {
	p := start(t, "--addr", "127.0.0.1:0")
	connectTo(t, p.url)
	p.stop()
	if want := "Stopping: 1 client connected, 0 requests running; waiting for 15s at most. The same signal again stops at once.\n"; !strings.Contains(p.out.String(), want) {
		t.Errorf("%q is missing in\n%s", want, p.out.String())
	}
}

// So it does without a client, if a server takes its time.
func TestStoppingSaysThatAServerHasNotEnded(t *testing.T) {
	t.Parallel()
	p := launchMain(t, &Main{
		Args:      []string{"--addr", "127.0.0.1:0", "--no-start-check", "--close-timeout", "1h", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1000; done"},
		LookupEnv: clitest.Environment(nil), Silence: 1,
	})
	p.log.await(t, 1, `msg="warm server starts"`)
	p.signals <- syscall.SIGINT
	p.out.await(t, 1, "Stopping: it has not ended yet; waiting for 15s at most. The same signal again stops at once.\n")
	p.signals <- syscall.SIGINT
	p.wantExit(exit.Signal + int(syscall.SIGINT))
}

// A client that speaks TLS to a plain address, or the other way, is a line in the log.
func TestWrongSchemeIsLogged(t *testing.T) {
	p := start(t, "--addr", "127.0.0.1:0")
	address := strings.TrimPrefix(p.base(), "http://")
	if conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}); err == nil {
		conn.Close()
		t.Error("TLS to a plain address worked")
	}
	p.log.await(t, 1, `msg="TLS to an address with plain HTTP" remedy="use http:// in the client, or set tls-cert" option=addr`)

	pem := newCertificate(t)
	p = start(t, "--addr", "127.0.0.1:0", "--tls-cert", clitest.WriteFile(t, "cert.pem", pem.cert), "--tls-key", clitest.WriteFile(t, "key.pem", pem.key))
	wantStatus(t, newClient(t, &http.Transport{}), "http"+strings.TrimPrefix(p.base(), "https")+"/healthz", "", http.StatusBadRequest)
	p.log.await(t, 1, `msg="plain HTTP to an address with TLS" remedy="use https:// in the client"`)
}

// check --url is a client of a running gateway.
func TestCheckOfARunningGateway(t *testing.T) {
	gw := start(t, "--addr", "127.0.0.1:0", "--auth-tokens-file", clitest.WriteFile(t, "tokens", "alice:"+tokenOfAlice+"\n"))
	p := launch(t, "check", "--url", gw.url, "--header", "Authorization: Bearer "+tokenOfAlice)
	p.wantExit(exit.OK)
	if out := p.out.String(); !strings.Contains(out, "✓ HTTP+SSE: a call ") || !strings.HasSuffix(out, "A client can use "+gw.url+".\n") {
		t.Errorf("got\n%s", out)
	}
	p = launch(t, "check", "--url", gw.url, "--origin", "https://app.example.com", "--header", "Authorization: Bearer "+tokenOfAlice)
	p.wantExit(exit.Failure)
	if out := p.out.String(); !strings.HasSuffix(out, "\nNot all of "+gw.url+" works: begin with the first ✗, Origin.\n") {
		t.Errorf("got\n%s", out)
	}
	p = launch(t, "check", "--url", gw.url, "--json")
	p.wantExit(exit.Failure)
	var answer struct {
		Works bool
		Steps []struct{ Name, Result, Remedy string }
	}
	ssetest.Want(t, "JSON", json.Unmarshal([]byte(p.out.String()), &answer), nil)
	var failed []string
	for _, s := range answer.Steps {
		if s.Result == "failed" {
			failed = append(failed, s.Name)
		}
	}
	if answer.Works || !slices.Equal(failed, []string{"authentication"}) {
		t.Errorf("got %+v", answer)
	}
}

// A signal ends check --url at once, which says where that was.
func TestCheckOfARunningGatewayIsInterrupted(t *testing.T) {
	t.Parallel()
	p, signals := &program{t: t}, make(chan os.Signal)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		signals <- syscall.SIGINT
		<-r.Context().Done()
	}))
	m := &Main{
		Args: []string{"check", "--url", server.URL + "/mcp"}, LookupEnv: clitest.Environment(nil), Silence: time.Hour,
		Stdout: &p.out, Stderr: &p.log, Notify: func(...os.Signal) <-chan os.Signal { return signals },
	}
	code := m.Run()
	server.Close()
	ssetest.Want(t, "exit code", code, exit.Failure)
	if out := p.out.String(); !strings.HasPrefix(out, "✓ TCP ") || !strings.Contains(out, "\n! HTTP ") || !strings.HasSuffix(out, "  stopped here\nInterrupted at HTTP: what comes after it was not tried.\n") {
		t.Errorf("got\n%s", out)
	}
}

// Without a place for the key of ids, the log says what that means for clients.
func TestSessionsThatEndWithTheProcessAreTold(t *testing.T) {
	start(t, "--addr", "127.0.0.1:0").log.await(t, 1, `msg="sessions will not survive a restart: set HOME or --id-key-file"`)
}
