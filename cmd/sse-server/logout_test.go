package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A login whose issuer is down is forgotten here, and that is what logout can do: it says what is left.
func TestLogoutWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	remote.logIn(t, env)
	remote.Close()
	p := launchWith(t, env, "logout", remote.URL+"/mcp")
	p.wantExit(exit.OK)
	ssetest.WantText(t, "logout", p.out.String(), "Logged out of "+remote.URL+"/mcp here. "+remote.URL+
		" could not be told: nothing listens there (connection refused). Its token may stay good until it ends: end it in your account there.\n")
	again := launchWith(t, env, "logout", remote.URL+"/mcp")
	again.wantExit(exit.OK)
	ssetest.WantText(t, "logout again", again.out.String(), "Nobody is logged in at")
}

// The logout of a login whose file is not used deletes it, and has the issuer end the login if no other user can have
// written the file.
func TestLogoutOfAFileThatIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode os.FileMode
		data string // empty: as it is
		want string
		left bool // the tokens are good
	}{
		"others can read it":  {0o644, "", "has ended the login", false},
		"others can write it": {0o666, "", "The issuer was not told", true},
		"no login":            {0o600, "{", "The issuer was not told", true},
	} {
		remote, env := newProtected(t), clitest.State(t)
		remote.logIn(t, env)
		file := clitest.Must(filepath.Glob(filepath.Join(env["XDG_STATE_HOME"], "sse-server", "logins", "*.json")))[0]
		if c.data != "" {
			ssetest.Must(t, os.WriteFile(file, []byte(c.data), 0o600))
		}
		ssetest.Must(t, os.Chmod(file, c.mode))
		p := launchWith(t, env, "logout", remote.URL+"/mcp")
		p.wantExit(exit.OK)
		ssetest.WantText(t, name, p.out.String(), "Deleted "+file, c.want)
		ssetest.WantText(t, name, p.log.String(), "warning: "+file)
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: the file is there", name)
		}
		ssetest.Want(t, name+": good tokens", len(remote.tokens) > 0, c.left)
		again := launchWith(t, env, "logout", remote.URL+"/mcp")
		again.wantExit(exit.OK)
		ssetest.WantText(t, name, again.out.String(), "Nobody is logged in at")
	}
}
