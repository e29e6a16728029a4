package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const (
	ownLoginsOfIssuer = "public-url: " + publicURL + "\noauth: {issuer: ISSUER, page-client-id: page}\nservers:\n  notes: {url: URL/mcp, login: per-principal}\n"
	audienceOfNotes   = publicURL + "/notes/mcp"
)

// logInByIssuer logs in by a link, whose page asks for no token: the person shows at the issuer of the gateway who it is.
func (s *surfer) logInByIssuer(link string) {
	s.t.Helper()
	_, at, page := s.get(s.consent(link, ""))
	ssetest.Want(s.t, "last page", at, pageOfNotes+"/done")
	ssetest.WantText(s.t, "last page", page, "You are logged in.")
}

// logins returns the files of the logins of principals.
func logins(t *testing.T, env map[string]string) []string {
	t.Helper()
	return clitest.Must(filepath.Glob(filepath.Join(env["XDG_STATE_HOME"], "sse-server", "logins", "of-principals", "*.json")))
}

// noteUse has the login of a principal made, and last used, at a time.
func noteUse(t *testing.T, path string, at time.Time) {
	t.Helper()
	before, after, _ := strings.Cut(string(clitest.Must(os.ReadFile(path))), `"loggedIn": "`)
	_, after, _ = strings.Cut(after, `"`)
	ssetest.Must(t, os.WriteFile(path, []byte(before+`"loggedIn": "`+at.Format(time.RFC3339)+`"`+after), 0o600))
	ssetest.Must(t, os.Chtimes(strings.TrimSuffix(path, "json")+"lock", at, at))
}

// A principal of the issuer in oauth logs in at the remote server, after it has shown at the issuer who it is. The login
// is that of nobody else, also after a restart, and ends with the issuer, and after 30 days without use.
func TestPrincipalOfAnIssuerLogsIn(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	issuer, sign := startIssuerOf(t)
	alice, bob := sign("alice", audienceOfNotes), sign("bob", audienceOfNotes)
	file := strings.ReplaceAll(ownLoginsOfIssuer, "ISSUER", issuer)
	l := startOwn(t, remote, env, file)
	_, linkOfAlice := l.ask(t, alice)
	status, _ := newSurfer(t, l, "bob").post(linkOfAlice, publicURL, "")
	ssetest.Want(t, "status for bob, who has not seen the page", status, http.StatusOK)
	_, at, page := newSurfer(t, l, "bob").get(newSurfer(t, l, "bob").consent(linkOfAlice, ""))
	ssetest.WantText(t, "where the consent of another browser leads", at, pageOfNotes+"/principal?")
	ssetest.WantText(t, "page", page, "This browser has begun no login here")
	intruder := newSurfer(t, l, "bob")
	_, _, page = intruder.get(intruder.consent(linkOfAlice, ""))
	ssetest.WantText(t, "page for bob", page, "as somebody else than the user of the client that got this link")
	newSurfer(t, l, "alice").logInByIssuer(linkOfAlice)
	l.wantAs(t, "notes", alice, "alice")
	_, linkOfBob := l.ask(t, bob)
	newSurfer(t, l, "bob").logInByIssuer(linkOfBob)
	l.wantAs(t, "notes", bob, "bob")
	l.wantAs(t, "notes", alice, "alice")

	l.restart(t, env)
	l.wantAs(t, "notes", alice, "alice")
	l.wantAs(t, "notes", bob, "bob")
	remote.wantNoSecret(t, "the log", l.log.String())
	if strings.Contains(l.log.String(), "eyJ") {
		t.Error("the log has a token of the gateway's issuer")
	}
	files := logins(t, env)
	ssetest.Want(t, "files of logins", len(files), 2)
	for _, path := range files {
		data := string(clitest.Must(os.ReadFile(path)))
		remote.wantNoSecret(t, "a file", data)
		if strings.Contains(data, `"oauth:bob"`) {
			noteUse(t, path, time.Now().Add(-31*24*time.Hour))
		}
	}
	l.restart(t, env)
	l.log.await(t, 1, "login of a principal forgotten: it is no more")
	l.wantAs(t, "notes", alice, "alice")
	_, _ = l.ask(t, bob)

	other, signOther := startIssuerOf(t) // whose alice is somebody else
	l.write(t, "gw.yaml", strings.ReplaceAll(strings.ReplaceAll(ownLoginsOfIssuer, "ISSUER", other), "URL/", remote.URL+"/"))
	l.restart(t, env)
	l.log.await(t, 1, "login of a principal forgotten: it is no more")
	_, _ = l.ask(t, signOther("alice", audienceOfNotes))
	ssetest.Want(t, "files of logins", len(logins(t, env)), 0)
}

// Two gateways of one user, with one place for what they keep, leave each other's principals alone.
func TestGatewaysOfAUserKeepTheirPrincipalsApart(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	l := startOwn(t, remote, env, ownLogins)
	_, link := l.ask(t, aliceToken)
	newSurfer(t, l, "alice").logIn(link, aliceToken)
	other := startOwn(t, remote, env, strings.Replace(ownLogins, publicURL, "https://other.example.com", 1))
	other.write(t, "tokens", "bob:"+bobToken+"\n")
	other.restart(t, env)
	ssetest.Want(t, "files of logins", len(logins(t, env)), 1)
	l.restart(t, env)
	l.wantAs(t, "notes", aliceToken, "alice")
}

// Once a day a gateway deletes the logins of an issuer's principals that nobody has used for 30 days.
func TestUnusedLoginsEndEachDay(t *testing.T) {
	remote, env := newProtected(t), clitest.State(t)
	issuer, sign := startIssuerOf(t)
	l := startOwn(t, remote, env, strings.ReplaceAll(ownLoginsOfIssuer, "ISSUER", issuer))
	for _, who := range []string{"alice", "bob"} {
		_, link := l.ask(t, sign(who, audienceOfNotes))
		newSurfer(t, l, who).logInByIssuer(link)
	}
	l.stop()
	c, err := config.Load([]string{"-c", filepath.Join(l.dir, "gw.yaml")}, clitest.Environment(env), new(config.Config))
	ssetest.Must(t, err)
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, path := range logins(t, env) {
			isAlices := strings.Contains(string(clitest.Must(os.ReadFile(path))), `"oauth:alice"`)
			noteUse(t, path, now.Add(map[bool]time.Duration{true: -29 * 24 * time.Hour, false: -31 * 24 * time.Hour}[isAlices]))
		}
		d := &daemon{log: slog.New(slog.DiscardHandler), turn: make(chan struct{}, 1)}
		d.config.Store(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.reloadWhenAsked(ctx, nil) }()
		for _, want := range []int{2, 1, 0} { // bob's ends after the first day, alice's after the second
			synctest.Wait()
			ssetest.Want(t, "logins", len(logins(t, env)), want)
			time.Sleep(24*time.Hour + time.Minute)
		}
		cancel()
		<-done
		d.retiring.Wait()
	})
}
