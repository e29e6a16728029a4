package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// withServers is a file with three servers and more.
func withServers(more string) string {
	return "servers:\n  github: {command: [g]}\n  brave: {command: [b]}\n  memory: {url: https://m/mcp, forward-header: [X-User]}\n" + more
}

// All that a view can have is taken, in the order of the file.
func TestViewsOfTheFile(t *testing.T) {
	const views = `
request-timeout: 2m
sessions: shared
views:
  team:
    title: The team's tools
    for: trae
    request-timeout: 3m
    servers:
      github: {include: ["*issue*", get_me], exclude: "delete_*", only: non-destructive, prompts: [], resources: null}
      brave:
        prefix: ""
        rename: {brave_web_search: web_search}
        describe: {web_search: "Searches the web."}
      memory:
  small: {search: true, servers: {memory: {}}}
`
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", withServers(views)))
	var got []string
	for _, v := range c.Views {
		o := c.Gateway(v.Server, gateway.Options{})
		got = append(got, fmt.Sprint(o.Name, " ", c.PathOf(v.Server), " ", v.Kind(), " ", o.RequestTimeout, " ", o.Sessions, " ", o.Warm, " ",
			o.ForwardHeaders, " ", o.Remember == nil, "\n", v.text()))
	}
	ssetest.Want(t, "the views", strings.Join(got, "\n"), `team /team/mcp view 3m0s per-connection -1 [X-User] true
"The team's tools" "trae"
"github" ["*issue*" "get_me"] ["delete_*"] "non-destructive" [] [] map[] map[] false false true
"brave" [] [] "" [] [] prefix "" map["brave_web_search":"web_search"] map["web_search":"Searches the web."] true true true
"memory" [] [] "" [] [] map[] map[] true true true
small /small/mcp view 2m0s per-connection -1 [X-User] true
"" "" search
"memory" [] [] "" [] [] map[] map[] true true true`)
	_, options := c.Views[1].Composed(func(server string) jsonrpc.Dialer { return nil })
	ssetest.Want(t, "options", fmt.Sprint(options), "{small    true <nil>}")
	members, options := c.Views[0].Composed(func(server string) jsonrpc.Dialer { return nil })
	ssetest.Want(t, "members", members[1].Name, "brave")
	ssetest.Want(t, "title", options.Title, "The team's tools")
}

// A view is part of the file of a client, too, with the names that this gives to servers. Elsewhere such a key of a
// client is its own, and there is the view of all.
func TestViewsInFilesOfClients(t *testing.T) {
	const servers = `"A b": {"command": "x"}, "c": {"url": "https://c"}`
	for content, want := range map[string]string{
		`{"mcpServers": {` + servers + `}, "views": {"v": {"servers": {"A b": {}, "c": {"exclude": ["x"]}}}}}`: "v/mcp",
		`{"mcpServers": {` + servers + `}, "views": ["mine"]}`:                                                 "mcp",
		`{"context_servers": {` + servers + `}, "views": {"x": 1}}`:                                            "mcp",
	} {
		c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "mcp.json", content))
		var got []string
		for _, v := range c.Views {
			got = append(got, strings.TrimPrefix(c.PathOf(v.Server), "/"))
		}
		ssetest.Want(t, content, strings.Join(got, " "), want)
	}
}

// Each mistake in a view is told with its place in the file, and what to write.
func TestBadViews(t *testing.T) {
	const some = "views: {v: {servers: {github: {}, "
	for more, want := range map[string]string{
		"views: [v]\n":                                                  `:5:8: views: want a mapping of names to views, such as {team: {servers: `,
		"views: {v: }\n":                                                `:5:9: views.v: name its servers, such as servers: {github: {}}`,
		"views: {v: {servers: {}}}\n":                                   `:5:9: views.v: name its servers`,
		"views: {v: x}\n":                                               `:5:12: views.v: want options, such as {servers: {github: {}}}`,
		"views: {v: {servers: [github]}}\n":                             `:5:22: views.v.servers: want a mapping of the names of servers to rules`,
		"views: {v: {servers: {githb: {}}}}\n":                          `:5:23: views.v.servers.githb: the file has no such server, did you mean "github"? want one of github, brave, memory`,
		"views: {github: {servers: {brave: {}}}}\n":                     `:5:9: views.github: want another name: a server has this one`,
		"views: {mcp: {servers: {brave: {}}}}\n":                        `:5:9: views.mcp: want another name: /mcp is a route of sse-server`,
		"views: {login: {servers: {brave: {}}}}\n":                      `:5:9: views.login: want another name: /login is a route`,
		"views: {status: {servers: {brave: {}}}}\n":                     `:5:9: views.status: want another name: /status is a route`,
		"views: {A b: {servers: {brave: {}}}}\n":                        `:5:9: views.A b: want at most 64 letters of a-z, digits, _ and -, as it is part of the path, such as a-b`,
		"views: {v: {servers: {w: {}}}, w: {servers: {brave: {}}}}\n":   `:5:23: views.v.servers.w: a view cannot be in a view: name its servers`,
		some + "brave: x}}}\n":                                          `:5:42: views.v.servers.brave: want rules, such as {include: ["get_*"]}, or {}`,
		some + "brave: {includ: [a]}}}}\n":                              `:5:43: unknown key "includ" in views.v.servers.brave (did you mean include?); a server of a view has include, exclude`,
		some + "brave: {include: ['[a']}}}}\n":                          `:5:53: views.v.servers.brave.include: `,
		some + "brave: {resources: [a, '']}}}}\n":                       `:5:58: views.v.servers.brave.resources: `,
		some + "brave: {prefix: " + strings.Repeat("x", 41) + "}}}}\n":  `:5:51: views.v.servers.brave.prefix: it has 41 characters, and 40 are allowed`,
		some + "brave: {rename: {a: x, b: x}}}}}\n":                     `:5:61: views.v.servers.brave.rename.b: a gets the same name: want another one`,
		some + "brave: {rename: {a: x.y}}}}}\n":                         `:5:55: views.v.servers.brave.rename.a: want a name of up to 64 letters, digits, _ and -, but got "x.y"`,
		some + "brave: {rename: [a]}}}}\n":                              `:5:51: views.v.servers.brave.rename: want a mapping of names of tools, such as {brave_web_search: web_search}`,
		some + "brave: {exclude: [a], rename: {a: b}}}}}\n":             `:5:66: views.v.servers.brave.rename.a: exclude leaves this tool out: remove one of the two`,
		some + "brave: {describe: {a: b}, exclude: [a]}}}}\n":           `:5:54: views.v.servers.brave.describe.a: exclude leaves this tool out`,
		some + "brave: {only: reading}}}}\n":                            `:5:49: views.v.servers.brave.only: want read-only or non-destructive, but got "reading"`,
		"views: {v: {for: traee, servers: {brave: {}}}}\n":              `:5:18: views.v.for: no client is called "traee", did you mean "trae"? want one of `,
		"views: {v: {search: sometimes, servers: {brave: {}}}}\n":       `:5:21: views.v.search: want true or false, but got "sometimes"`,
		"views: {v: {search: [true], servers: {brave: {}}}}\n":          `:5:21: views.v.search: want true or false`,
		"views: {v: {search: true, for: trae, servers: {brave: {}}}}\n": `:5:9: views.v: for and search exclude each other: with search three tools are listed`,
		"views: {v: {searches: true, servers: {brave: {}}}}\n":          `:5:13: unknown key "searches" in views.v (did you mean search?)`,
		"views: {v: {sessions: shared, servers: {brave: {}}}}\n":        `:5:13: views.v: sessions is about a server: write it at the server, below servers`,
		"views: {v: {command: [x], servers: {brave: {}}}}\n":            `:5:13: views.v: command is about a server`,
		"views: {v: {url: x, servers: {brave: {}}}}\n":                  `:5:13: views.v: url is about a server`,
		"views: {v: {warm: 1, servers: {brave: {}}}}\n":                 `:5:13: views.v: warm is about a server`,
		"views: {v: {remember: true, servers: {brave: {}}}}\n":          `:5:13: views.v: remember is about a server`,
		"views: {v: {env: {A: b}, servers: {brave: {}}}}\n":             `:5:13: views.v: env is about a server`,
		"views: {v: {server: {brave: {}}}}\n":                           `:5:13: unknown key "server" in views.v (did you mean servers?); a view has title, for, search, servers, and the options`,
		"views: {v: {request-timeout: 5, servers: {brave: {}}}}\n":      `:5:30: request-timeout: want a number with a unit`,
	} {
		path := clitest.WriteFile(t, "gw.yaml", withServers(more))
		wantRefusal(t, nil, path+want, "--config", path)
	}
	const ofClient = "mcpServers: {A b: {command: x}, c: {command: x}}\n"
	long := strings.Repeat("l", 39)
	for content, want := range map[string]string{
		"views: {v: {servers: {a: {}}}}\n":                                         `:1:9: views: the file has no servers that a view could have: name them below the key servers`,
		"servers: {a__b: {}, c: {}}\nviews: {v: {servers: {a__b: {}, c: {}}}}\n":   `:2:23: views.v.servers.a__b: names of tools begin with the name of the server and __, so with __ in it, or _ at its end, those of two servers could be the same: give the server another name, or a prefix here, such as {prefix: a_b_}`,
		ofClient + "views: {v: {servers: {A b: {}, a-b: {}}}}\n":                   `:2:32: views.v.servers.a-b: the server is there twice: remove one of the two`,
		"servers: {a_: {}, c: {}}\nviews: {v: {servers: {c: {}, a_: {}}}}\n":       `:2:30: views.v.servers.a_: names of tools begin with`,
		"servers: {" + long + ": {}}\nviews: {v: {servers: {" + long + ": {}}}}\n": `:2:23: views.v.servers.` + long + `: names of tools begin with the name of the server and __, which are over 40 characters: give the server a shorter name, or a prefix here, such as {prefix: llllllll_}`,
	} {
		path := clitest.WriteFile(t, "gw.yaml", content)
		wantRefusal(t, nil, path+want, "--config", path)
	}
	var many, all strings.Builder
	for i := range 65 {
		fmt.Fprintf(&many, "  s%d: {}\n", i)
		fmt.Fprintf(&all, "      s%d: {}\n", i)
	}
	path := clitest.WriteFile(t, "gw.yaml", "servers:\n"+many.String()+"views:\n  v:\n    servers:\n"+all.String())
	wantRefusal(t, nil, ":68:3: views.v: it has 65 servers, and a view has at most 64: make two views of it", "--config", path)
	for _, content := range []string{"servers: {a__b: {}, c: {}}\nviews: {v: {servers: {a__b: {prefix: a_}, c: {}}}, w: {servers: {a__b: {}}}}\n", "views: {}\nwarm: 1\n", withServers("views:\n")} {
		mustLoad(t, nil, "--config", clitest.WriteFile(t, "gw.yaml", content))
	}
}

// A new name that tools of two servers have by the file is told when it is read, with its place. The first has it. A
// tool that rules leave out takes no name.
func TestNewNamesThatTwoToolsHave(t *testing.T) {
	for members, want := range map[string]string{
		`github: {prefix: "", rename: {x: search}}, brave: {prefix: "", rename: {y: search, z: other}}`: `:6:92: views.v.servers.brave.rename.y: x of github has the name search, as it comes first, so this tool is left out: want another name`,
		`github: {prefix: "a.", rename: {x: y}}, brave: {prefix: a, rename: {z: _y}}`:                   `:6:88: views.v.servers.brave.rename.z: x of github has the name a_y, as it comes first, so this tool is left out: want another name`,
		`github: {rename: {x: search}}, brave: {rename: {y: search}}`:                                   "",
		`github: {prefix: "", include: [a], rename: {x: s}}, brave: {prefix: "", rename: {y: s}}`:       "",
		`github: {rename: {x: search}}`: "",
	} {
		path := clitest.WriteFile(t, "gw.yaml", withServers("views:\n  v: {servers: {"+members+"}}\n"))
		if want != "" {
			want = path + want
		}
		ssetest.Want(t, members, strings.Join(mustLoad(t, nil, "-c", path).Warnings, "\n"), want)
	}
}

// A selection of all servers goes by their own names: it holds at the servers, and not again at the view, which has
// others.
func TestSelectionOfAllServersIsNotThatOfViews(t *testing.T) {
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", withServers("include: [get_me]\nonly: read-only\nviews: {v: {servers: {github: {}, brave: {}}}}\n")))
	if o := c.Gateway(c.Views[0].Server, gateway.Options{}); o.Select != nil {
		t.Errorf("the view offers %+v", o.Select)
	}
	ssetest.Want(t, "what a server offers", c.Gateway(c.Servers[0], gateway.Options{}).Select.Include[0], "get_me")
	path := clitest.WriteFile(t, "gw.yaml", withServers("views: {v: {include: [x], servers: {github: {}}}}\n"))
	wantRefusal(t, nil, path+":5:13: views.v: include is about a server: write it at the server, below servers", "-c", path)
}

// A reload names the views that it has changed.
func TestChangedViewsAreNamed(t *testing.T) {
	load := func(more string) *Config {
		return mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", withServers(more)))
	}
	before := load("views: {v: {servers: {github: {}}}, w: {servers: {brave: {}}}}\n")
	after := load("views: {v: {servers: {github: {exclude: [x]}}, idle-timeout: 1m}, x: {servers: {brave: {}}}}\n")
	ssetest.Want(t, "the changes", strings.Join(before.Changes(after), ", "), "v.idle-timeout, new: x, v.servers, gone: w")
	if before.Hash() == after.Hash() || before.Hash() == load("views: {v: {servers: {github: {prefix: \"\"}}}, w: {servers: {brave: {}}}}\n").Hash() {
		t.Error("other views have the same hash")
	}
}

// Several servers that nobody else can reach are one view at the path of a single server, unless the file says
// something about views.
func TestViewOfAll(t *testing.T) {
	const two = "servers: {a: {}, b: {}}\n"
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	for _, tc := range []struct {
		content string
		args    []string
		want    string // the path; empty: there is no view
	}{
		{two, nil, "/mcp"},
		{two, []string{"--addr", "localhost:0", "--prefix", "/p", "--admin-addr", "127.0.0.1:0"}, "/p/mcp"},
		{two, []string{"check"}, "/mcp"},
		{two, []string{"connect", "cursor"}, "/mcp"},
		{"servers: {a: {}}\n", nil, ""},
		{"warm: 0\n", nil, ""},
		{two + "views: {}\n", nil, ""},
		{two + "views:\n", nil, ""},
		{"mcpServers: {a: {command: x}, b: {command: x}}\n", nil, "/mcp"},
		{"mcpServers: {a: {command: x}, b: {command: x}}\nviews:\n", nil, ""},
		{two + "views: {v: {servers: {a: {}}}}\n", nil, "/v/mcp"},
		{two, []string{"--addr", ":8080", "--insecure"}, ""},
		{two, []string{"--auth-tokens-file", tokens}, ""},
		{two + "public-url: https://gw.example.com\noauth: {issuer: https://login.example.com}\n", nil, ""},
		{two + "public-url: https://gw.example.com\n", nil, ""},
		{two, []string{"--trusted-proxies", "127.0.0.1"}, ""},
		{two, []string{"--allowed-hosts", "localhost,mcp.example.com"}, ""},
		{two, []string{"--allowed-hosts", "*"}, ""},
		{two, []string{"--allowed-hosts", "localhost"}, "/mcp"},
		{two + "trusted-proxies: 127.0.0.1\n", []string{"stdio"}, "/mcp"},
		{two, []string{"--shared", "x"}, ""},
		{two, []string{"stdio", "--connect", "http://127.0.0.1:8080/a/mcp"}, ""},
		{"servers: {a: {}, mcp: {}}\n", nil, ""},
		{"servers: {a: {}, login: {}}\n", nil, ""},
		{"servers: {a: {}, mcp: {}}\n", []string{"stdio"}, "/mcp"}, // no path is served there
		{two + "auth-tokens-file: " + tokens + "\n", []string{"stdio"}, "/mcp"},
	} {
		args := append(tc.args, "-c", clitest.WriteFile(t, "gw.yaml", tc.content))
		c := mustLoad(t, clitest.State(t), args...)
		got := ""
		for _, v := range c.Views {
			got += c.PathOf(v.Server)
			if tc.want != "/v/mcp" && (!v.IsOfAll() || len(v.Members) != 2 || v.Name != "mcp") {
				t.Errorf("%q: got the view %+v", args, v)
			}
		}
		ssetest.Want(t, fmt.Sprintf("%s %q", tc.content, args), got, tc.want)
	}
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", "servers: {a__b_: {}, "+strings.Repeat("l", 50)+": {}, c: {}}\n"))
	if err := c.Views[0].tryToCompose(); err != nil {
		t.Errorf("names of servers that tools cannot have: %v", err)
	}
	ssetest.Want(t, "a prefix in the place of such a name", *c.Views[0].Members[0].Prefix, "a_b__")
	c.DropViewOfAll()
	ssetest.Want(t, "views", len(c.Views), 0)
	wantRefusal(t, nil, ": stdio serves one server or view, and the file has 2 servers and 0 views: want one view", "stdio", "-c",
		clitest.WriteFile(t, "gw.yaml", two+"views: {}\n"))
}

// A file that is made has a view of its servers, if there are several, under a name that none of them has.
func TestFileThatIsMadeHasAView(t *testing.T) {
	made := FileOf([]Entry{{Name: "all", Command: []string{"x"}}, {Name: "a__b", Command: []string{"y"}}}, Making{})
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", string(made.Data)))
	if len(c.Views) != 1 || c.Views[0].Name != "all-2" || c.Views[0].Members[0].Prefix != nil || *c.Views[0].Members[1].Prefix != "a_b__" {
		t.Errorf("got %s", made.Data)
	}
	if one := FileOf([]Entry{{Name: "a", Command: []string{"x"}}}, Making{}); strings.Contains(string(one.Data), "views") {
		t.Errorf("of one server: got %s", one.Data)
	}
	// Its views are names of stdio --connect, too.
	c = mustLoad(t, clitest.State(t), "stdio", "--connect", "http://127.0.0.1:8080/all-2/mcp", "-c", clitest.WriteFile(t, "gw.yaml", string(made.Data)))
	if c.ViewOfStdio() != nil {
		t.Error("the shared sse-server has the view")
	}
}

// Nothing is silent about servers that are too many for one view.
func TestTooManyServersForTheViewOfAll(t *testing.T) {
	var file strings.Builder
	file.WriteString("servers:\n")
	entries := make([]Entry, 65)
	for i := range entries {
		entries[i] = Entry{Name: fmt.Sprintf("s%d", i), Command: []string{"x"}}
		fmt.Fprintf(&file, "  s%d: {command: [x]}\n", i)
	}
	path := clitest.WriteFile(t, "gw.yaml", file.String())
	c := mustLoad(t, nil, "-c", path)
	want := path + ": it has 65 servers, and a view has at most 64, so there is none of all: name views of those that belong together"
	if len(c.Views) != 0 || !slices.Contains(c.Warnings, want) {
		t.Errorf("got %d views, and the warnings %q; want none, and %q", len(c.Views), c.Warnings, want)
	}
	made := FileOf(entries, Making{})
	want = "65 servers are too many for one view, which has at most 64: name views of those that belong together"
	if strings.Contains(string(made.Data), "views") || !slices.Contains(made.Warnings, want) {
		t.Errorf("a file that is made: got the warnings %q, want %q", made.Warnings, want)
	}
}

// A server and a view say what they are for. What a file says of a single server is not said of its views.
func TestDescription(t *testing.T) {
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", `
description: All that we have.
servers: {a: {description: Finds books.}, b: {}}
views: {one: {servers: {a: {}}}, two: {description: For the shop., servers: {a: {}, b: {}}}}
`))
	got := map[string]string{}
	for _, s := range c.Endpoints() {
		got[s.Name] = c.Gateway(s, gateway.Options{}).Description
	}
	ssetest.Want(t, "descriptions", got, map[string]string{
		"a": "Finds books.", "b": "All that we have.", "one": "", "two": "For the shop.",
	})
}
