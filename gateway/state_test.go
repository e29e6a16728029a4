package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/page"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const stateFile = "?page=state.json"

// stateAt returns what a GET of a state returns; nil if there is none.
func stateAt[S page.State | page.Landing](t *testing.T, h http.Handler, path string, header ...string) (s *S) {
	t.Helper()
	w := getState(h, path, header...)
	if w.Code == 200 {
		must(t, json.Unmarshal(w.Body.Bytes(), &s))
	}
	return s
}

// getState returns the answer to a GET of a state.
func getState(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	path, query, _ := strings.Cut(path, "?")
	return get(h, path+stateFile+query, append([]string{"Accept", "application/json"}, header...)...)
}

// brief returns what a state says, in short.
func brief(s *page.State) string {
	if s == nil {
		return "nothing"
	}
	var names []string
	for _, tool := range s.List {
		names = append(names, strings.TrimSuffix(tool.Name+"="+tool.Member+"/"+tool.Own, "=/"))
	}
	text := fmt.Sprint(s.Name, " ", s.State, " ", names)
	for _, m := range s.Members {
		text += fmt.Sprint(" ", m.Name, ":", m.State)
		if m.Tools != nil {
			text += fmt.Sprint(":", *m.Tools)
		}
	}
	return text
}

// users lets in the users in a header, at a restricted server those alone that are named.
func users(o *gateway.Options, restricted ...string) {
	o.Authenticate = func(r *http.Request) (string, error) {
		user := r.Header.Get("User")
		switch {
		case user == "":
			return "", errors.New("no token")
		case restricted != nil && !strings.Contains(strings.Join(restricted, " "), user):
			return "", &auth.Error{Status: http.StatusForbidden}
		}
		return user, nil
	}
	forprogram.OptionsOf(o).Restricted = restricted != nil
}

// The state of a view is for those who may use it, and has the members that each may use. It comes from memory: it
// opens no connection, and starts no server.
func TestStateOfAView(t *testing.T) {
	opts := remembering()
	opts.Registry = prometheus.NewRegistry()
	users(&opts.Options)
	ups := []*server{withTools("read", "write"), withTools("search"), withTools("never")}
	withView(t, opts, ups, func(t *testing.T, w *viewWorld) {
		w.members[0].Allow = func(ctx context.Context) bool {
			a := asker.FromContext(ctx)
			return a == nil || a.Principal == "alice"
		}
		w.members[1].Rename = map[string]string{"search": "find"}
		must(t, w.view.Replace(w.members, compose.Options{Name: "team"}))
		for i := range 2 {
			learnedFromSilence(t, w.member(i), ups[i])
		}
		s, err := gateway.NewServers(w.front, w.member(0), w.member(1), w.member(2))
		must(t, err)
		for user, want := range map[string]string{
			"":      "nothing",
			"alice": "team cached [a__read=a/read a__write=a/write b__find=b/search] a:cached:2 b:cached:1 c:not started",
			"bob":   "team cached [b__find=b/search] b:cached:1 c:not started",
		} {
			equal(t, "the view for "+user, brief(stateAt[page.State](t, s, "/mcp/team/mcp", "User", user)), want)
		}
		equal(t, "a stranger", getState(s, "/mcp/team/mcp").Code, 401)
		landing := stateAt[page.Landing](t, s, "/", "User", "bob")
		var all []string
		for i := range landing.Servers {
			all = append(all, brief(&landing.Servers[i])+" "+landing.Servers[i].Path)
		}
		equal(t, "all servers for bob", all, []string{
			"team cached [b__find=b/search] b:cached:1 c:not started /mcp/team/mcp",
			"a cached [read write] /mcp/a/mcp", "b cached [search] /mcp/b/mcp", "c not started [] /mcp/c/mcp",
		})
		w.wantStarts("by the states", 1, 1, 0)
		equal(t, "connections", w.front.Connections()+w.member(0).Connections()+w.member(2).Connections(), 0)
	})
}

// The state of a view has warnings about its rules, for those alone who may use the servers that they are about.
func TestWarningsAboutTheRulesOfAView(t *testing.T) {
	opts := remembering()
	users(&opts.Options)
	ups := []*server{withTools("read", "write"), withTools("read")}
	withView(t, opts, ups, func(t *testing.T, w *viewWorld) {
		w.members[0].Allow = func(ctx context.Context) bool { return asker.FromContext(ctx).Principal == "alice" }
		w.members[0].Prefix, w.members[1].Prefix = new(""), new("")
		w.members[0].Exclude = []string{"delete_*"}
		w.members[1].Describe = map[string]string{"find": "Finds."}
		must(t, w.view.Replace(w.members, compose.Options{Name: "team"}))
		ask := func(user string) *page.State { return stateAt[page.State](t, w.front, "/mcp", "User", user) }
		equal(t, "before a list is known", len(ask("alice").Warnings), 0)
		for i := range ups {
			learnedFromSilence(t, w.member(i), ups[i])
		}
		const ofB = `b: describe "find" meets nothing that the server lists`
		equal(t, "for alice", ask("alice").Warnings, []string{
			`a: exclude "delete_*" meets nothing that the server lists`, ofB,
			`read of b is left out: the name read is that of a "read": rename one of the two`,
		})
		equal(t, "for bob", ask("bob").Warnings, []string{ofB})
	})
}

// The state of a server has the rules that meet nothing: of the lists that memory has, else of the last list of tools.
func TestWarningsAboutASelection(t *testing.T) {
	const ofTools = `exclude "no*" meets nothing that the server lists`
	for name, tc := range map[string]struct {
		with gateway.Settings
		want []string
	}{
		"without memory": {gateway.Settings{}, []string{ofTools}},
		"with memory": {remembering(), []string{
			ofTools, `prompts "none" meets nothing that the server lists`, `resources "x:*" meets nothing that the server lists`,
		}},
	} {
		tc.with.Select = &compose.Selection{
			Exclude: []string{"dr*", "no*"}, Prompts: []string{"keep", "none"}, Resources: []string{"keep:*", "x:*"},
		}
		inFakeTime(t, offering(), tc.with, func(t *testing.T, g *gateway.Gateway) {
			equal(t, name+", before", len(stateAt[page.State](t, g, "/mcp").Warnings), 0)
			p := connect(t, g, plain)
			p.post(request("1", "tools/list"), asking("2", "tools/list", `{"cursor":"2"}`))
			time.Sleep(time.Second)
			p.take()
			equal(t, name, stateAt[page.State](t, g, "/mcp").Warnings, tc.want)
		})
	}
}

// The state counts the lists that are known. What a server has said to a client that calls itself something of its own
// may be of that client: then its tools are known alone.
func TestStateCountsWhatIsKnown(t *testing.T) {
	count := func(n *int) string {
		if n == nil {
			return "unknown"
		}
		return fmt.Sprint(*n)
	}
	for client, want := range map[string]string{"claude-code": "3 2 2", "something of its own": "3 unknown unknown"} {
		inFakeTime(t, offering(), remembering(), func(t *testing.T, g *gateway.Gateway) {
			p := connect(t, g, plain)
			p.post(strings.Replace(initialize("0", "2025-06-18", "{}"), `"peer"`, `"`+client+`"`, 1))
			time.Sleep(time.Second)
			p.post(request("1", "tools/list"), asking("2", "tools/list", `{"cursor":"2"}`), request("3", "prompts/list"), request("4", "resources/list"))
			time.Sleep(time.Second)
			p.take()
			s := stateAt[page.State](t, g, "/mcp")
			equal(t, client, count(s.Tools)+" "+count(s.Prompts)+" "+count(s.Resources), want)
		})
	}
}

// Without an answer that lets the visitor in, the list has names alone, and no name of a server that is not for all.
func TestStatesAtTheRoot(t *testing.T) {
	change := func(name string, o *gateway.Options) {
		o.Description = "What " + name + " is for."
		switch name {
		case "a":
			users(o)
		case "b":
			users(o, "alice")
		}
	}
	inFakeTimeWithSeveral(t, change, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		for user, want := range map[string][]string{
			"":      {"a locked  true", "c not started What c is for. false"},
			"bob":   {"a not started What a is for. true", "c not started What c is for. false"},
			"alice": {"a not started What a is for. true", "b not started What b is for. true", "c not started What c is for. false"},
		} {
			var got []string
			for _, one := range stateAt[page.Landing](t, s, "/", "User", user).Servers {
				got = append(got, fmt.Sprint(one.Name, " ", one.State, " ", one.Description, " ", one.Token))
			}
			equal(t, "for "+user, got, want)
		}
		for name, header := range map[string][]string{
			"another site": {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
			"a web page":   {"Origin", "https://evil.example"},
		} {
			for _, path := range []string{"/", "/mcp/c/mcp"} {
				equal(t, name+" at "+path, getState(s, path, header...).Code, 403)
			}
		}
		r := fromHere(ssetest.Request(t.Context(), http.MethodGet, "/"+stateFile, ""))
		r.Host = "rebound.example"
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		equal(t, "under a name that a stranger made resolve to us", answer.Code, 403)
		equal(t, "from elsewhere", do(s, ssetest.Request(t.Context(), http.MethodGet, "/mcp/c/mcp"+stateFile, "", "Accept", "application/json")).Code, 405)
		for _, g := range all {
			equal(t, "connections", g.Connections(), 0)
		}
	}, &server{}, &server{}, &server{})
}

// do returns the answer to a request.
func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A visitor has what people paste for all servers: for views, and the servers that no view has. Texts have places for
// URLs, and a word for the token, never a token.
func TestStateHasTextsForAll(t *testing.T) {
	opts := gateway.Settings{Options: gateway.Options{Registry: prometheus.NewRegistry()}}
	users(&opts.Options)
	withView(t, opts, []*server{{}, {}}, func(t *testing.T, w *viewWorld) {
		alone, err := gateway.New(&server{}, gateway.Options{Name: "z", Prefix: "/mcp/z", Registry: opts.Registry})
		must(t, err)
		defer func() { equal(t, "error", <-shutdown(alone, time.Minute), nil) }()
		s, err := gateway.NewServers(w.member(0), w.member(1), w.front, alone)
		must(t, err)
		body := getState(s, "/?&client=Claude%20Code", "User", "alice-secret").Body.String()
		var landing page.Landing
		must(t, json.Unmarshal([]byte(body), &landing))
		wantText(t, "the texts", landing.All.Text, "transport http team @URL0@", "Bearer TOKEN", "\nclaude mcp add --scope user --transport http z @URL3@")
		equal(t, "lines", strings.Count(landing.All.Text, "\n"), 1)
		if strings.Contains(body, "secret") {
			t.Errorf("the state has the token: %s", body)
		}
		if stateAt[page.Landing](t, s, "/", "User", "alice").All != nil {
			t.Error("without a client there is a text")
		}
	})
}

// A state says why a server fails, and what to do, to those alone who may see details.
func TestStateOfAServerThatFails(t *testing.T) {
	for _, local := range []bool{true, false} {
		u := &server{dial: func(context.Context, int) error { return errors.New("exit status 1: " + password) }}
		opts := gateway.Options{Page: gateway.PageOn}
		forprogram.OptionsOf(&opts).Remedy = func(error) string { return "buy another one" }
		inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
			p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage, Quiet: true})
			time.Sleep(6 * time.Second)
			p.take()
			dials := u.starts()
			r := ssetest.Request(t.Context(), http.MethodGet, "/mcp"+stateFile, "", "Accept", "application/json")
			if local {
				r = fromHere(r)
			}
			body := do(g, r).Body.String()
			wantText(t, "the state", body, `"state":"failing"`, `"reason":"start_failed"`)
			equal(t, "details in "+body, sees(body), local)
			equal(t, "a remedy in "+body, strings.Contains(body, "buy another one"), local)
			equal(t, "starts", u.starts(), dials)
		})
	}
}

// A state is sent once: who has it is told so.
func TestStateIsSentOnce(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		w := getState(g, "/mcp")
		equal(t, "kind", w.Header().Get("Content-Type"), "application/json")
		equal(t, "caches", w.Header().Get("Cache-Control"), "no-store")
		equal(t, "again", getState(g, "/mcp", "If-None-Match", w.Header().Get("Etag")).Code, http.StatusNotModified)
		equal(t, "for a client of streams", kindOf(get(g, "/mcp"+stateFile, "Accept", "text/event-stream")), "stream")
	})
}
