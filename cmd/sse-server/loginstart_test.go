package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The start check of a server that nobody is logged in at says so, with the command: nothing has failed. A pipe has no
// link, whose state is for the person alone.
func TestStartCheckSaysThatALoginIsMissing(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp")
	p.out.await(t, 1, "After the login its tools are there, without a new start.")
	ssetest.WantText(t, "start check", p.out.String(), "  waiting for a login (",
		"What to do: run in a terminal: sse-server login "+remote.URL+"/mcp\n")
	if text := p.out.String(); strings.Contains(text, "FAILED") || strings.Contains(text, "/authorize") {
		t.Errorf("the start check says:\n%s", text)
	}
	remote.logIn(t, env)
	ssetest.Want(t, "tools", toolsOf(t, connectTo(t, p.url)), "whoami")
	p.stop()
	checked := launchWith(t, clitest.State(t), "check", "--start", "--url", remote.URL+"/mcp")
	checked.wantExit(exit.Failure)
	ssetest.WantText(t, "check --start", checked.out.String(), "what to do: run in a terminal: sse-server login "+remote.URL+"/mcp\n")
}

// The command that a missing login names works as it is printed, also for a server that is told from others by its
// query. Nobody reads that: it may be a key.
func TestPrintedCommandLogsIn(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp?key=s3cret", "--error-details", "full")
	p.out.await(t, 1, "After the login its tools are there")
	_, command, _ := strings.Cut(p.out.String(), "run in a terminal: sse-server ")
	command, _, _ = strings.Cut(command, "\n")
	_, body := get(t, newClient(t, &http.Transport{}), p.base()+"/readyz", "")
	ssetest.WantText(t, "/readyz", body, "run in a terminal: sse-server "+command)
	session := connectTo(t, p.url)
	name := strings.Trim(strings.TrimPrefix(command, "login "), "'")
	out := remote.runLogin(t, env, "login", name)
	awaitTools(t, session, "whoami")
	listed := launchWith(t, env, "logins")
	listed.wantExit(exit.OK)
	ssetest.WantText(t, "logins", listed.out.String(), name+"\n")
	gone := launchWith(t, env, "logout", name)
	gone.wantExit(exit.OK)
	ssetest.WantText(t, "logout", gone.out.String(), "has ended the login")
	p.stop()
	if all := p.out.String() + p.log.String() + out + body + listed.out.String() + gone.out.String(); strings.Contains(all, "s3cret") {
		t.Errorf("the query is shown:\n%s", all)
	}
}

// check --url names the command while nobody is logged in, and tries the server with the login of this user after it.
func TestCheckOfAURLUsesTheLogin(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	p := launchWith(t, env, "check", "--url", remote.URL+"/mcp")
	p.wantExit(exit.Failure)
	ssetest.WantText(t, "before the login", p.out.String(), "what to do: run in a terminal: sse-server login "+remote.URL+"/mcp; or give a token")
	remote.logIn(t, env)
	p = launchWith(t, env, "check", "--url", remote.URL+"/mcp")
	p.wantExit(exit.OK)
	ssetest.WantText(t, "after the login", p.out.String(), "the login of this user is not refused", "a call", "1 tool")

	for _, file := range clitest.Must(filepath.Glob(filepath.Join(env["XDG_STATE_HOME"], "sse-server", "logins", "*.json"))) {
		var kept map[string]any
		ssetest.Must(t, json.Unmarshal(clitest.Must(os.ReadFile(file)), &kept))
		kept["expiry"] = time.Now().Add(-time.Hour)
		ssetest.Must(t, os.WriteFile(file, clitest.Must(json.Marshal(kept)), 0o600))
	}
	remote.mu.Lock()
	remote.isDown = true
	remote.mu.Unlock()
	p = launchWith(t, env, "check", "--url", remote.URL+"/mcp")
	p.wantExit(exit.Failure)
	ssetest.WantText(t, "while the issuer is down", p.out.String(), "what to do: the issuer cannot renew the login now: the token endpoint answered 503")
	if text := p.out.String(); strings.Contains(text, "run in a terminal") {
		t.Errorf("somebody has to log in: %s", text)
	}
	remote.wantNoSecret(t, "what check prints", p.out.String()+p.log.String())
}
