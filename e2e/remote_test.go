package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
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
					if err != nil {
						t.Fatal(err)
					}
					p.start(fmt.Sprintf(again, u.Port()))
				}
				for _, s := range []*stream{anna, ben} {
					awaitService(g, s, "at last")
					assertEachAnsweredOnce(t, s)
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

// A server that has forgotten a session answers 404, one in trouble 5xx. What may
// be asked again is, on a new session.
func TestRemoteSessionThatIsLostIsReplaced(t *testing.T) {
	t.Parallel()
	lose := map[string]func(w http.ResponseWriter){
		"404": func(w http.ResponseWriter) {
			http.Error(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, http.StatusNotFound)
		},
		"500": func(w http.ResponseWriter) { http.Error(w, "<h1>Oops</h1>", http.StatusInternalServerError) },
		"503": func(w http.ResponseWriter) { http.Error(w, "try later", http.StatusServiceUnavailable) },
	}
	servers := map[string]*program{
		"TypeScript1": startProgram(t, nil, serve(t, "sdk1-streamable")...),
		"GoSDK":       startProgram(t, nil, built(t, "everything"), "-transport", "streamable"),
	}
	for server, p := range servers {
		for how, fail := range lose {
			if !all && how != "404" {
				continue
			}
			for mode, flags := range modes() {
				t.Run(server+"/"+how+"/"+mode, func(t *testing.T) {
					t.Parallel()
					f := startFaulty(t, p.url)
					g := startGateway(t, append([]string{"--url", f.url}, flags...)...)
					s, other := openStream(t, g.url), openStream(t, g.url)
					s.request("0", "tools/list", "{}")
					other.request("0", "tools/list", "{}")
					f.answer(once("tools/list", fail))
					if got := s.request("1", "tools/list", "{}"); got.Error != nil {
						t.Errorf("tools/list = %v, want the answer of the next session", got.Error)
					}
					f.answer(once("slow", fail)) // of which nobody knows whether it may be repeated
					if got := s.request("2", "tools/call", callParams("slow", `{"ms":1}`)); got.Error == nil || !got.Error.names("session_lost") {
						t.Errorf("slow = %+v (error %v), want session_lost", got.Result, got.Error)
					}
					for _, each := range []*stream{s, other} {
						if got := each.call("3", "echo", `{"message":"m"}`); got != "m" {
							t.Errorf("echo = %q, want m", got)
						}
						assertEachAnsweredOnce(t, each)
					}
				})
			}
		}
	}
}

// once fails the first POST that has the word in its body.
func once(word string, fail func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
	done := false
	return func(w http.ResponseWriter, r *http.Request) bool {
		if done || r.Method != http.MethodPost || !strings.Contains(peek(r), word) {
			return false
		}
		done = true
		fail(w)
		return true
	}
}

// What the operator has named goes to the server, and nothing else of the client's.
func TestRemoteServerGetsTheHeadersThatAreMeantForIt(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"streamable", "stateless", "sse"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := startFaulty(t, startProgram(t, nil, built(t, "everything"), "-transport", kind).url)
			g := startGateway(t, "--url", f.url, "--header", "Authorization: Bearer of-the-gateway", "--forward-header", "X-Team")
			s := openStream(t, g.url, "Authorization", "Bearer of-the-client", "X-Team", "blue", "X-Secret", "mine", "Cookie", "a=b")
			if got := s.call("1", "echo", `{"message":"m"}`); got != "m" {
				t.Errorf("echo = %q, want m", got)
			}
			for _, h := range f.headers() {
				if h.Get("Authorization") != "Bearer of-the-gateway" || h.Get("X-Team") != "blue" || h.Get("X-Secret")+h.Get("Cookie") != "" {
					t.Errorf("the server got %v", h)
				}
			}
			if len(f.headers()) < 2 { // stateless: who are you, and the call
				t.Errorf("requests = %d: the proxy is not in between", len(f.headers()))
			}
			if strings.Contains(g.log.String(), "of-the-") {
				t.Error("the log has a token in it")
			}
		})
	}
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
			t.Run(kind+"/"+mode, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, nil, built(t, "everything"), "-transport", kind)
				g := startGateway(t, slices.Concat(hangs, []string{"--initialization-timeout", "1s", "--url", p.url}, flags)...)
				s := openStream(t, g.url)
				awaitService(g, s, "before")
				freeze(t, g, p.cmd.Process.Pid)
				got := s.request("1", "tools/call", callParams("echo", `{"message":"m"}`))
				if got.Error == nil || !got.Error.names("timeout") && !got.Error.names("session_lost") {
					t.Errorf("echo of a server that hangs = %+v (error %v), want timeout or session_lost", got.Result, got.Error)
				}
				g.eventually("the session is given up", func() bool { return strings.Contains(g.log.String(), `session lost"`) })
				if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				awaitService(g, s, "after")
				assertEachAnsweredOnce(t, s)
			})
		}
	}
}
