package merge_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// list returns a list of entries, which are the elements of a JSON array.
func list(kind merge.Kind, array string) *merge.List {
	var entries []json.RawMessage
	rawjson.Each(json.RawMessage(array), func(entry json.RawMessage) { entries = append(entries, entry) })
	return merge.NewList(kind, entries)
}

// tools returns a list of tools with these names.
func tools(names ...string) *merge.List {
	entries := make([]json.RawMessage, len(names))
	for i, name := range names {
		entries[i] = json.RawMessage(`{"name":` + string(rawjson.Quote(name)) + `}`)
	}
	return merge.NewList(merge.Tools, entries)
}

func rules(t testing.TB, spec selection.Spec) *selection.Rules {
	t.Helper()
	r, err := selection.Compile(spec)
	ssetest.Must(t, err)
	return r
}

// told returns the final names of a list, each with its origin.
func told(r *merge.Result, kind merge.Kind) string {
	var b strings.Builder
	for _, e := range r.Lists[kind] {
		fmt.Fprintf(&b, "%s=%s/%s ", e.Name, e.Member, e.Own)
	}
	return strings.TrimSpace(b.String())
}

// left returns what is left out, each with its reason.
func left(r *merge.Result) string {
	var b strings.Builder
	for _, l := range r.Left {
		fmt.Fprintf(&b, "%s/%s: %s (%s); ", l.Member, l.Own, l.Reason, l.By)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// The rows are those of the chapter Names in docs/design/views.md.
func TestFinalName(t *testing.T) {
	long := "list_pull_request_review_comments_for_repository_and_"
	for _, c := range []struct {
		alone              bool
		prefix, base, want string
	}{
		{true, "", "create_issue", "create_issue"},
		{true, "", "admin.tools/list", "admin.tools/list"},
		{false, "github__", "create_issue", "github__create_issue"},
		{false, "github__", "admin.tools/list", "github__admin_tools_list"},
		{false, "github__", "grüße", "github__gr__e"},
		{false, "gh.", "x", "gh_x"},
		{false, "brave__", "web_search", "brave__web_search"},
		{false, "", "web_search", "web_search"},
		{false, "github__", long + "tag", "github__" + long + "tag"},
		{false, "github__", long + "branch", "github__list_pull_request_review_comments_for_repositor_lm2rqpeo"},
		{true, "", long + long, long + long},
	} {
		ssetest.Want(t, c.prefix+" "+c.base, merge.FinalName(c.alone, c.prefix, c.base), c.want)
	}
}

func TestTools(t *testing.T) {
	github := func(l *merge.List) merge.Member {
		return merge.Member{Name: "github", Prefix: "github__", Lists: [merge.Kinds]*merge.List{merge.Tools: l}}
	}
	brave := func(l *merge.List) merge.Member {
		return merge.Member{Name: "brave", Lists: [merge.Kinds]*merge.List{merge.Tools: l}}
	}
	with := func(m merge.Member, change func(*merge.Member)) merge.Member {
		change(&m)
		return m
	}
	unprefixed := func(m *merge.Member) { m.Prefix = "" }
	for name, c := range map[string]struct {
		in          merge.Input
		told, left  string
		unmet, bare string // bare: the final names of the tool a
	}{
		"one member keeps its names": {
			in:   merge.Input{Alone: true, Members: []merge.Member{brave(tools("a.b", "c", ""))}},
			told: "a.b=brave/a.b c=brave/c =brave/",
		},
		"several have prefixes": {
			in:   merge.Input{Members: []merge.Member{github(tools("b", "a")), brave(tools("a.b", "a"))}},
			told: "github__b=github/b github__a=github/a a_b=brave/a.b a=brave/a",
			bare: "github__a a",
		},
		"nothing is known of one": {
			in:   merge.Input{Members: []merge.Member{github(nil), brave(tools("a"))}},
			told: "a=brave/a", bare: "a",
		},
		"the first member has a name": {
			in:   merge.Input{Members: []merge.Member{with(github(tools("a")), unprefixed), brave(tools("a", "b"))}},
			told: "a=github/a b=brave/b", left: `brave/a: name taken (github "a")`, bare: "a",
		},
		"a name that needs no change goes first": {
			in:   merge.Input{Members: []merge.Member{brave(tools("a.b", "a_b", "a/b"))}},
			told: "a_b=brave/a_b", left: `brave/a.b: name taken (brave "a_b"); brave/a/b: name taken (brave "a_b")`,
		},
		"then the one that is listed first": {
			in:   merge.Input{Members: []merge.Member{github(tools("a/b", "a.b"))}},
			told: "github__a_b=github/a/b", left: `github/a.b: name taken (github "a/b")`,
		},
		"one tool twice": {
			in:   merge.Input{Alone: true, Members: []merge.Member{brave(tools("a", "a"))}},
			told: "a=brave/a", left: `brave/a: name taken (brave "a")`, bare: "a",
		},
		"a tool without a name": {
			in:   merge.Input{Members: []merge.Member{github(list(merge.Tools, `[{"n":1},{"name":"a"}]`))}},
			told: "github__a=github/a", left: "github/: no name ()", bare: "github__a",
		},
		"rules": {
			in: merge.Input{Members: []merge.Member{with(github(tools("a", "ab", "b", "c")), func(m *merge.Member) {
				m.Rules = rules(t, selection.Spec{Include: []string{"a*", "b", "z*"}, Exclude: []string{"b", "y"}})
			})}},
			told: "github__a=github/a github__ab=github/ab", bare: "github__a",
			left:  `github/b: excluded (exclude "b"); github/c: not included (include)`,
			unmet: `[{github include "z*"} {github exclude "y"}]`,
		},
		"only": {
			in: merge.Input{Members: []merge.Member{with(github(list(merge.Tools,
				`[{"name":"a","annotations":{"readOnlyHint":true}},{"name":"b"}]`)), func(m *merge.Member) {
				m.Rules = rules(t, selection.Spec{Only: selection.ReadOnly})
			})}},
			told: "github__a=github/a", bare: "github__a", left: "github/b: only (only read-only)",
		},
		"a tool that is left out has no name": {
			in: merge.Input{Members: []merge.Member{with(with(github(tools("a")), unprefixed), func(m *merge.Member) {
				m.Rules = rules(t, selection.Spec{Exclude: []string{"a"}})
			}), brave(tools("a"))}},
			told: "a=brave/a", left: `github/a: excluded (exclude "a")`, bare: "a",
		},
		"rename": {
			in: merge.Input{Members: []merge.Member{with(github(tools("a", "b")), func(m *merge.Member) {
				m.Rename = map[string]string{"a": "x", "gone": "y"}
			})}},
			told: "github__x=github/a github__b=github/b", bare: "github__x",
			unmet: `[{github rename "gone"}]`,
		},
		"describe needs a tool": {
			in: merge.Input{Alone: true, Members: []merge.Member{with(brave(tools("a", "b")), func(m *merge.Member) {
				m.Rename = map[string]string{"a": "x"}
				m.Describe = map[string]string{"x": "X", "b": "B", "c": "C"}
			})}},
			told: "x=brave/a b=brave/b", unmet: `[{brave describe "c"}]`, bare: "x",
		},
		"too many tools": {
			in:   merge.Input{Alone: true, Limit: &merge.Limit{Client: "trae", Tools: 2}, Members: []merge.Member{brave(tools("a", "b", "c", "d"))}},
			told: "a=brave/a b=brave/b", bare: "a",
			left: "brave/d: over the limit (trae takes 2 tools); brave/c: over the limit (trae takes 2 tools)",
		},
		"too many characters": {
			in: merge.Input{Alone: true, Limit: &merge.Limit{Client: "trae", Descriptions: 3}, Members: []merge.Member{
				with(brave(list(merge.Tools, `[{"name":"a","description":"ü"},{"name":"b","description":"12345"},{"name":"c","description":"123"}]`)),
					func(m *merge.Member) { m.Describe = map[string]string{"b": "12"} })}},
			told: "a=brave/a b=brave/b", bare: "a", left: "brave/c: over the limit (trae takes 3 characters of descriptions)",
		},
		"names that are too long go first": {
			in: merge.Input{Alone: true, Limit: &merge.Limit{Client: "cursor", Tools: 1, NameLength: 5, Front: "x__"}, Members: []merge.Member{
				brave(tools("abc", "ab", "a"))}},
			told: "ab=brave/ab",
			left: `brave/abc: over the limit (cursor takes names of 5 characters with "x__" in front, and this one has 6); ` +
				`brave/a: over the limit (cursor takes 1 tools)`,
		},
		"no limit leaves a tool": {
			in:   merge.Input{Alone: true, Limit: &merge.Limit{Client: "x", Descriptions: 1}, Members: []merge.Member{brave(list(merge.Tools, `[{"name":"a","description":"12"}]`))}},
			left: "brave/a: over the limit (x takes 1 characters of descriptions)",
		},
	} {
		r := merge.Build(c.in)
		ssetest.Want(t, name+": told", told(r, merge.Tools), c.told)
		ssetest.Want(t, name+": left", left(r), c.left)
		ssetest.Want(t, name+": unmet", fmt.Sprint(r.Unmet), max(c.unmet, "[]"))
		ssetest.Want(t, name+": bare", strings.Join(r.Bare(merge.Tools, "a"), " "), c.bare)
		for _, e := range r.Lists[merge.Tools] {
			o, ok := r.Named(merge.Tools, e.Name)
			ssetest.Want(t, name+": "+e.Name+" leads", fmt.Sprint(o, ok), fmt.Sprint(e.Origin, true))
		}
	}
}

// The bytes of a server stay, but for what the view gives: the name and the description.
func TestEntriesKeepTheirBytes(t *testing.T) {
	m := merge.Member{Name: "m", Prefix: "m__", Rename: map[string]string{"b": "B"},
		Describe: map[string]string{"b": "new", "c": "added"}}
	m.Lists[merge.Tools] = list(merge.Tools,
		`[{ "x":1e3, "name" : "a" },{"name":"b","description":"old","y":[ ]},{"name":"c"},{"name":"m__d"}]`)
	m.Lists[merge.Prompts] = list(merge.Prompts, `[{"name":"b","description":"old"}]`)
	raw := func(r *merge.Result, kind merge.Kind) (all []string) {
		for _, e := range r.Lists[kind] {
			all = append(all, string(e.Raw))
		}
		return all
	}
	r := merge.Build(merge.Input{Members: []merge.Member{m}})
	ssetest.WantLines(t, raw(r, merge.Tools), []string{
		`{ "x":1e3, "name" : "m__a" }`, `{"name":"m__B","description":"new","y":[ ]}`,
		`{"name":"m__c","description":"added"}`, `{"name":"m__m__d"}`,
	})
	ssetest.WantLines(t, raw(r, merge.Prompts), []string{`{"name":"m__b","description":"old"}`})
	m.Prefix, m.Rename, m.Describe = "", nil, nil
	r = merge.Build(merge.Input{Alone: true, Members: []merge.Member{m}})
	ssetest.WantLines(t, raw(r, merge.Tools), []string{
		`{ "x":1e3, "name" : "a" }`, `{"name":"b","description":"old","y":[ ]}`, `{"name":"c"}`, `{"name":"m__d"}`,
	})
}

// Prompts have final names as tools do, resources and templates keep their URIs. Rules hold for all of them.
func TestPromptsAndResources(t *testing.T) {
	member := func(name, prompts, resources, templates string, spec selection.Spec) merge.Member {
		return merge.Member{Name: name, Prefix: name + "__", Rules: rules(t, spec), Rename: map[string]string{"p": "tool"},
			Lists: [merge.Kinds]*merge.List{merge.Prompts: list(merge.Prompts, prompts),
				merge.Resources: list(merge.Resources, resources), merge.Templates: list(merge.Templates, templates)}}
	}
	r := merge.Build(merge.Input{Members: []merge.Member{
		member("a", `[{"name":"p"},{"name":"q.1"}]`, `[{"uri":"x:1"},{"uri":"y:1"},{"uri":"x:1","name":"again"}]`,
			`[{"uriTemplate":"x:{id}"},{"uriTemplate":"y:{id}"}]`,
			selection.Spec{Resources: []string{"x:*", "z:*"}, Prompts: []string{"p", "q*"}}),
		member("b", `[{"name":"p"}]`, `[{"uri":"x:1"},{"uri":"x:2"}]`,
			`[{"uriTemplate":"x:{id}"},{"uriTemplate":"x:{+path}"}]`, selection.Spec{}),
	}})
	ssetest.Want(t, "prompts", told(r, merge.Prompts), "a__p=a/p a__q_1=a/q.1 b__p=b/p")
	ssetest.Want(t, "resources", told(r, merge.Resources), "x:1=a/x:1 x:1=a/x:1 x:2=b/x:2")
	ssetest.Want(t, "templates", told(r, merge.Templates), "x:{id}=a/x:{id} x:{+path}=b/x:{+path}")
	ssetest.Want(t, "left", left(r), "a/y:1: not included (resources); a/y:{id}: not included (resources); "+
		"b/x:1: name taken (a); b/x:{id}: name taken (a)")
	ssetest.Want(t, "unmet", fmt.Sprint(r.Unmet), `[{a resources "z:*"}]`)
	for uri, want := range map[string]string{"x:1": "a true", "x:2": "b true", "y:1": " false", "x:9": " false"} {
		member, ok := r.Resource(uri)
		ssetest.Want(t, uri, fmt.Sprint(member, " ", ok), want)
	}
	for uri, want := range map[string]string{
		"x:9": "a true", "x:9/9": "b true", "x:{+path}": "b true", "x:{id}": "a true", "y:1": " false", "z": " false",
	} {
		member, ok := r.Template(uri)
		ssetest.Want(t, "template of "+uri, fmt.Sprint(member, " ", ok), want)
	}
	ssetest.Want(t, "a rule leaves a URI out", r.Allows("a", "y:1") || !r.Allows("b", "y:1"), false)
}

// A template that the first member lists under a rule makes URIs that this rule leaves out.
func TestRulesHoldForURIsOfTemplates(t *testing.T) {
	m := merge.Member{Name: "a", Rules: rules(t, selection.Spec{Resources: []string{"f:{+path}", "f:/open/*"}})}
	m.Lists[merge.Templates] = list(merge.Templates, `[{"uriTemplate":"f:{+path}"}]`)
	r := merge.Build(merge.Input{Members: []merge.Member{m}})
	for uri, want := range map[string]bool{"f:/open/1": true, "f:/shut/1": false, "f:{+path}": true} {
		_, ok := r.Template(uri)
		ssetest.Want(t, uri, ok, want)
	}
}

func TestTemplates(t *testing.T) {
	for _, c := range []struct{ template, met, not string }{
		{"file:///{path}", "file:///a file:/// file:///a%2Fb file:///ä", "file:///a/b http:///a xfile:///a"},
		{"file:///{+path}", "file:///a/b?c", "file://a"},
		{"repo://{owner}/{repo}/contents{/path*}", "repo://o/r/contents repo://o/r/contents/a/b", "repo://o/contents repo://o/r/contentsa"},
		{"x:{?q,r}", "x: x:?q=1&r=2", "x:q"},
		{"x:{.a}{#b}", "x: x:.1#2", "x:1"},
		{"a.c{x}", "a.cd", "abc"},
		{"x:[{a}]", "x:[1]", "x:1"},
		{"plain", "plain", "plain1"},
		{"l:{+x}", "l:" + strings.Repeat("x", 8<<10-2), "l:" + strings.Repeat("x", 8<<10-1)}, // all of it would be read
		{"x:{", "", "x: x:1"},
		{"x:{}", "", "x: x:1"},
		{strings.Repeat("a", 2049), "", strings.Repeat("a", 2048)},
	} {
		m := merge.Member{Name: "m"}
		entry, _ := json.Marshal([]map[string]string{{"uriTemplate": c.template}})
		m.Lists[merge.Templates] = list(merge.Templates, string(entry))
		r := merge.Build(merge.Input{Alone: true, Members: []merge.Member{m}})
		for uri, want := range maps.All(map[string]bool{c.met: true, c.not: false}) {
			for uri := range strings.FieldsSeq(uri) {
				_, ok := r.Template(uri)
				ssetest.Want(t, c.template+" makes "+uri, ok, want)
			}
		}
	}
}

// Of a server with very many templates the first ones are in the view.
func TestTooManyTemplates(t *testing.T) {
	var entries []map[string]string
	for i := range merge.MaxTemplates + 2 {
		entries = append(entries, map[string]string{"uriTemplate": fmt.Sprintf("x%d:{+path}", i)})
	}
	encoded, _ := json.Marshal(entries)
	m := merge.Member{Name: "m"}
	m.Lists[merge.Templates] = list(merge.Templates, string(encoded))
	r := merge.Build(merge.Input{Members: []merge.Member{m}})
	ssetest.Want(t, "listed", len(r.Lists[merge.Templates]), merge.MaxTemplates)
	ssetest.Want(t, "left out", fmt.Sprint(len(r.Left), " ", r.Left[0].Name, " ", r.Left[0].Reason, " ", r.Left[0].By),
		"2 x1000:{+path} over the limit a server has 1000 templates")
	for uri, want := range map[string]bool{"x999:a": true, "x1000:a": false} {
		_, ok := r.Template(uri)
		ssetest.Want(t, uri, ok, want)
	}
}

// An app is at the URI that a listed tool names, in either form. Each member counts once.
func TestApps(t *testing.T) {
	member := func(name, tools string, exclude ...string) merge.Member {
		m := merge.Member{Name: name, Prefix: name + "__", Rules: rules(t, selection.Spec{Exclude: exclude})}
		m.Lists[merge.Tools] = list(merge.Tools, tools)
		return m
	}
	r := merge.Build(merge.Input{Members: []merge.Member{
		member("a", `[{"name":"1","_meta":{"ui":{"resourceUri":"ui://x"}}},{"name":"2","_meta":{"ui/resourceUri":"ui://x"}}]`),
		member("b", `[{"name":"1","_meta":{"ui/resourceUri":"ui://x"}},{"name":"2","_meta":{"ui":{"resourceUri":"ui://y"}}}]`, "2"),
		member("c", `[{"name":"1","description":"resourceUri"},{"name":"2","_meta":{"ui":{"resourceUri":1}}},
			{"name":"3","_meta":{"ui":{"resourceUri":"file:///x"}}},{"name":"4","_meta":{"ui/resourceUri":"file:///x"}}]`),
	}})
	ssetest.Want(t, "x", fmt.Sprint(r.Apps("ui://x")), "[a b]")
	ssetest.Want(t, "left out", fmt.Sprint(r.Apps("ui://y")), "[]")
	ssetest.Want(t, "no app", fmt.Sprint(r.Apps("file:///x")), "[]")
	ssetest.Want(t, "none", fmt.Sprint(r.Apps("")), "[]")
}

func TestKinds(t *testing.T) {
	var all []string
	for kind := range merge.Kinds {
		all = append(all, kind.Method()+" "+kind.Member())
	}
	ssetest.Want(t, "kinds", strings.Join(all, "\n"), strings.Join([]string{
		mcp.MethodListTools + " tools", mcp.MethodListPrompts + " prompts", mcp.MethodListResources + " resources",
		mcp.MethodListTemplates + " resourceTemplates",
	}, "\n"))
}

// A view has a bound, whatever its members list.
func TestMostTools(t *testing.T) {
	names := make([]string, merge.MaxTools+1)
	for i := range names {
		names[i] = fmt.Sprint("t", i)
	}
	m := merge.Member{Name: "m"}
	m.Lists[merge.Tools] = tools(names...)
	r := merge.Build(merge.Input{Alone: true, Members: []merge.Member{m}})
	ssetest.Want(t, "listed", len(r.Lists[merge.Tools]), merge.MaxTools)
	ssetest.Want(t, "left", left(r), "m/t10000: over the limit (a view has at most 10000 tools)")
	ssetest.Want(t, "length", m.Lists[merge.Tools].Len(), merge.MaxTools+1)
}

// Whatever three servers list: final names are legal, each is there once and leads back to a tool that its member
// lists. A tool has the same name whichever members are known, and is there whenever it is there with all of them.
func FuzzBuild(f *testing.F) {
	f.Add("a\nb", "a\na.b\na_b", "ü\n"+strings.Repeat("x", 80), "", "p.", "q__", "a", "b")
	f.Add("a__b", "b", "", "", "a__", "a_", "", "")
	f.Add("x y\nx/y\nx-y", "x y", "x_y", "", "", "", "x y", "x_y")
	legal := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, first, second, third, prefix1, prefix2, prefix3, renamed, name string) {
		members := make([]merge.Member, 3)
		own := make([][]string, 3)
		for i, text := range []string{first, second, third} {
			own[i] = strings.Split(strings.ToValidUTF8(text, "?"), "\n")
			members[i] = merge.Member{Name: fmt.Sprint(i), Prefix: []string{prefix1, prefix2, prefix3}[i],
				Rename: map[string]string{renamed: name}}
			members[i].Lists[merge.Tools] = tools(own[i]...)
		}
		if !legal.MatchString(name) || !legal.MatchString("x"+prefix1) || !legal.MatchString("x"+prefix2) {
			return // the configuration refuses it
		}
		all := merge.Build(merge.Input{Members: members})
		finals := make(map[merge.Origin]string)
		seen := make(map[string]bool)
		for _, e := range all.Lists[merge.Tools] {
			o, ok := all.Named(merge.Tools, e.Name)
			member := int(e.Member[0] - '0')
			told, _ := rawjson.MemberText(e.Raw, "name")
			switch {
			case !legal.MatchString(e.Name):
				t.Errorf("the name %q is not legal", e.Name)
			case seen[e.Name]:
				t.Errorf("the name %q is there twice", e.Name)
			case !ok || o != e.Origin || !slices.Contains(own[member], o.Own):
				t.Errorf("the name %q leads to %v, want %v", e.Name, o, e.Origin)
			case told != e.Name:
				t.Errorf("the client is told %q, want %q", told, e.Name)
			}
			seen[e.Name], finals[e.Origin] = true, e.Name
		}
		for known := range 7 {
			some := slices.Clone(members)
			for i := range some {
				if known&(1<<i) == 0 {
					some[i].Lists = [merge.Kinds]*merge.List{}
				}
			}
			r := merge.Build(merge.Input{Members: some})
			there := make(map[merge.Origin]bool)
			for _, e := range r.Lists[merge.Tools] {
				there[e.Origin] = true
				if final, ok := finals[e.Origin]; ok && final != e.Name {
					t.Errorf("%v is %q with all members, and %q with %b", e.Origin, final, e.Name, known)
				}
			}
			for o := range finals {
				if known&(1<<(o.Member[0]-'0')) != 0 && !there[o] {
					t.Errorf("%v is listed with all members, and not with %b", o, known)
				}
			}
		}
	})
}
