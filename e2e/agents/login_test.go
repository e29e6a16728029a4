//go:build agents

package agents

import (
	"bufio"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const (
	// loginTool is the tool of a server at which nobody is logged in, and loginMark is in its description.
	loginTool = "login"
	loginMark = "This server wants a person to log in"
)

// linkOf matches the link of a login in what comes back to a model.
var linkOf = regexp.MustCompile(`http://127\.0\.0\.1:\d+/authorize[^\s"\\]+`)

// A server wants a login. An agent that comes first has one tool, and its model gets the link from that; after the
// login it has the tools of the server, at its next start at the latest. When the login has ended, the agent has them
// still, a call gets the link, and after the login the same call works.
func TestLogin(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a agent) {
		turns <- struct{}{}
		defer func() { <-turns }()
		command, journal := serverCommand(t)
		server, endLogins := startIssuer(t, startGateway(t, ssetest.PrivateDir(t), command).url(""))
		p := &played{t: t, a: a, file: journal, state: ssetest.PrivateDir(t), home: t.TempDir()}
		p.g = startGateway(t, p.state, nil, "--url", server)

		steps := calls(loginTool, loginTool, loginTool, hello)(p)
		steps[1].before = func() {
			p.visitLink(0)
			await(5*time.Second, func() bool { return strings.Contains(p.journal(), " tools/list\n") })
		}
		p.runAgain(steps)
		hasLink, words := p.hasLink(0), ""
		if !p.echoed(3) {
			words = "after its next start"
		}
		p.runAgain(calls(hello)(p)) // it lists the tools before a call, and so they are known later
		p.point("login", hasLink && p.echoed(0), words)

		endLogins()
		steps = calls(hello, hello)(p)
		steps[1].before = func() { p.visitLink(0) }
		p.runAgain(steps)
		words = ""
		if result, _ := p.m.result(0); p.hasLink(0) && !strings.Contains(result, "Log in at http") {
			words = "in an error of its own" // it does not know the answer that it has declared
		}
		p.point("login ended", p.hasLink(0) && p.echoed(1), words)
	})
}

// startIssuer puts an issuer before a server, and returns the URL of the server that wants a login then, and what ends
// all logins.
func startIssuer(t *testing.T, server string) (url string, endLogins func()) {
	t.Helper()
	cmd := exec.Command(built(t, "issuer"), server)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	ssetest.Must(t, err)
	out, err := cmd.StdoutPipe()
	ssetest.Must(t, err)
	ssetest.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // it has no more to say
	})
	lines := bufio.NewReader(out)
	read := func() string {
		line, err := lines.ReadString('\n')
		ssetest.Must(t, err)
		return strings.TrimSpace(line)
	}
	return read(), func() {
		_, err := io.WriteString(in, "\n")
		ssetest.Must(t, err)
		read()
	}
}

// runAgain runs the agent in the same home, with other steps.
func (p *played) runAgain(steps []step) {
	p.t.Helper()
	p.m = startModel(p.t, p.m, steps...)
	at := target{over: streamable, url: p.g.url("/mcp"), open: true}
	p.printed, p.ended = p.a.run(p.t, p.home, at, p.m, 3*time.Minute)
}

func (p *played) hasLink(at int) bool {
	result, _ := p.m.result(at)
	return linkOf.MatchString(result)
}

// visitLink is a person who opens the link in a result, and agrees to all.
func (p *played) visitLink(at int) {
	result, _ := p.m.result(at)
	link := linkOf.FindString(result)
	if link == "" {
		return // the point fails
	}
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(link)
	if err != nil {
		p.t.Errorf("the link: %v", err)
		return
	}
	defer resp.Body.Close()
	if page, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(page), "You are logged in at ") {
		p.t.Errorf("the last page: %v\n%s", err, page)
	}
}
