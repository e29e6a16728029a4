package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// restartable are remote servers and the flag that has them listen where they did.
func restartable(t *testing.T) map[string]func() (p *program, again string) {
	t.Helper()
	ofGo := func(flags ...string) func() (*program, string) {
		return func() (*program, string) {
			return startProgram(t, nil, append([]string{built(t, "everything")}, flags...)...), "-addr=127.0.0.1:%s"
		}
	}
	ofNode := func(kind string) func() (*program, string) {
		return func() (*program, string) { return startProgram(t, nil, serve(t, kind)...), "--port=%s" }
	}
	return map[string]func() (*program, string){
		"TypeScript1Streamable": ofNode("sdk1-streamable"),
		"TypeScript1SSE":        ofNode("sdk1-sse"),
		"TypeScript2Stateless":  ofNode("server2-stateless"),
		"GoSDKStreamable":       ofGo("-transport", "streamable"),
		"GoSDKStateless":        ofGo("-transport", "stateless"),
		"GoSDKSSE":              ofGo("-transport", "sse"),
	}
}

// The server goes away, refuses connections, and comes back without knowing its
// sessions. The streams stay; what is asked meanwhile is answered with an error.
func TestStreamsOutliveARemoteServer(t *testing.T) {
	t.Parallel()
	for name, start := range restartable(t) {
		if !all && name != "GoSDKStateless" && name != "TypeScript1Streamable" {
			continue
		}
		for mode, flags := range modes() {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				p, again := start()
				g := startGateway(t, slices.Concat([]string{"--initialization-timeout", "1s", "--url", p.url}, flags)...)
				anna, ben := openStream(t, g.url), openStream(t, g.url)
				for round := range 2 {
					for _, s := range []*stream{anna, ben} {
						awaitService(g, s, fmt.Sprint("up-", round))
					}
					p.kill()
					for _, s := range []*stream{anna, ben} {
						down := s.request(fmt.Sprintf(`"down-%d"`, round), "tools/call", callParams("echo", `{"message":"m"}`))
						if down.Error == nil {
							t.Errorf("a server that is gone answered with %+v", down.Result)
						}
					}
					u, err := url.Parse(p.url)
					ssetest.Must(t, err)
					p.start(fmt.Sprintf(again, u.Port()))
				}
				for _, s := range []*stream{anna, ben} {
					awaitService(g, s, "at last")
				}
			})
		}
	}
}

// awaitService calls until the server answers: the next start may wait.
func awaitService(g *gateway, s *stream, prefix string) {
	g.t.Helper()
	n := 0
	g.eventually("the server serves again", func() bool {
		n++
		got := s.request(fmt.Sprintf(`"%s-%d"`, prefix, n), "tools/call", callParams("echo", `{"message":"m"}`))
		if got.Error != nil && !got.Error.names("initialization_error") && !got.Error.names("session_lost") {
			g.t.Fatalf("echo = %v, want it to work, or an error that says that there is no session", got.Error)
		}
		return got.Error == nil
	})
}

// A remote server that is there and answers nothing more: its sessions are given
// up, and begun anew when it has come to itself.
func TestRemoteServerThatHangsLosesItsSessions(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"streamable", "stateless", "sse"} {
		if !all && kind != "streamable" {
			continue
		}
		for mode, flags := range modes() {
			if !all && mode != "PerConnection" {
				continue
			}
			t.Run(kind+"/"+mode, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, nil, built(t, "everything"), "-transport", kind)
				g := startGateway(t, slices.Concat([]string{"--request-timeout", "1s", "--initialization-timeout", "1s", "--url", p.url}, flags)...)
				s := openStream(t, g.url)
				awaitService(g, s, "before")
				freeze(t, g, p.cmd.Process.Pid)
				got := s.request("1", "tools/call", callParams("echo", `{"message":"m"}`))
				if got.Error == nil || !got.Error.names("timeout") && !got.Error.names("session_lost") {
					t.Errorf("echo of a server that hangs = %+v (error %v), want timeout or session_lost", got.Result, got.Error)
				}
				g.eventually("the session is given up", func() bool { return strings.Contains(g.log.String(), `session lost"`) })
				ssetest.Must(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGCONT))
				awaitService(g, s, "after")
			})
		}
	}
}
