package selection_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func compile(t testing.TB, spec selection.Spec) *selection.Rules {
	t.Helper()
	rules, err := selection.Compile(spec)
	ssetest.Must(t, err)
	return rules
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		glob string
		met  string // names, with a space between them
		not  string
	}{
		{"get_me", "get_me", "get_m get_me2 GET_ME aget_me"},
		{"*issue*", "issue create_issue issues list_issues_all", "isue Issue"},
		{"read_*", "read_ read_a read_a/b read_a.b", "read xread_a"},
		{"*_secret", "_secret a_secret a_secret_secret", "secret a_secrets"},
		{"a*b*c", "abc axxbyyc abcbc abbcc", "ab acb abcd"},
		{"*", "a a/b ü", ""},
		{"***", "a", ""},
		{"a?c", "abc a/c aüc a?c", "ac abbc"},
		{"?*", "a ab", ""},
		{"grüße", "grüße", "grusse gr??e"},
		{"a.c", "a.c", "abc"},
		{`a\*`, `a\ a\b`, "a*"},
	} {
		rules := compile(t, selection.Spec{Include: []string{c.glob}})
		for _, name := range strings.Fields(c.met) {
			ssetest.Want(t, c.glob+" on "+name, rules.Name(selection.Tools, name), selection.Verdict{})
		}
		for _, name := range strings.Fields(c.not) {
			ssetest.Want(t, c.glob+" on "+name, rules.Name(selection.Tools, name).Reason, selection.NotIncluded)
		}
	}
}

// A glob that cannot be read is refused with what to write in its place, and so is each other wrong rule beside it.
func TestRefusedRules(t *testing.T) {
	for name, c := range map[string]struct {
		spec selection.Spec
		says []string
	}{
		"empty":      {selection.Spec{Include: []string{""}}, []string{"include: a glob is empty", "write * for everything"}},
		"class":      {selection.Spec{Exclude: []string{"a[bc]"}}, []string{`exclude: the glob "a[bc]"`, "a glob for each choice"}},
		"braces":     {selection.Spec{Prompts: []string{"{a,b}"}}, []string{`prompts: the glob "{a,b}"`, "a glob for each choice"}},
		"negation":   {selection.Spec{Include: []string{"!a"}}, []string{`include: the glob "!a"`, "under exclude"}},
		"no UTF-8":   {selection.Spec{Resources: []string{"\xff"}}, []string{`resources: the glob "\xff" is not UTF-8`}},
		"long":       {selection.Spec{Include: []string{strings.Repeat("a", 257)}}, []string{"over 256 characters", "shorten it with *"}},
		"many":       {selection.Spec{Include: make([]string, 1001)}, []string{"there are 1001 globs, and 1000 are allowed"}},
		"only":       {selection.Spec{Only: "readonly"}, []string{`only: "readonly" is no choice: write read-only or non-destructive`}},
		"everything": {selection.Spec{Include: []string{"", "[", "fine"}, Only: "x"}, []string{"is empty", `"["`, `only: "x"`}},
	} {
		rules, err := selection.Compile(c.spec)
		if rules != nil || err == nil {
			t.Errorf("%s: got %v, %v", name, rules, err)
		}
		ssetest.WantText(t, name, err, c.says...)
	}
	// Templates have braces, and URIs of IPv6 have brackets.
	compile(t, selection.Spec{Resources: []string{"repo://{owner}/*", "http://[::1]/*"}})
}

// A URI that a server may read as another one is left out where resources are chosen.
func TestDotSegments(t *testing.T) {
	rules := compile(t, selection.Spec{Resources: []string{"file:///pub/*", "file:..*", "file:///pub/../fixed"}})
	for _, uri := range []string{
		"file:///pub/../etc/shadow", "file:///pub/./a", "file:///pub/..", "file:///pub/a/%2e%2E/%2e./b", "file:///pub/%2e",
		"file:///pub/..%2Fetc", `file:///pub\..\etc`, `file:///pub/a%5c..%5Cetc`, "file:///pub/..?a", "file:///pub/..#a",
		"file:../etc", "file:///pub/../fixed",
	} {
		ssetest.Want(t, uri, rules.Name(selection.Resources, uri), selection.Verdict{"not included", "resources"})
		ssetest.Want(t, uri+" without a choice", compile(t, selection.Spec{Include: []string{}}).Name(selection.Resources, uri), selection.Verdict{})
	}
	for _, uri := range []string{"file:///pub/a.b", "file:///pub/...", "file:///pub/.hidden", "file:///pub/a..b/c?d=..", "file:///pub/{+path}", "file:///pub//a"} {
		ssetest.Want(t, uri, rules.Name(selection.Resources, uri), selection.Verdict{})
	}
}

// A list that is left out chooses everything, an empty one nothing. Exclude wins.
func TestVerdicts(t *testing.T) {
	const (
		tool     = `{"name":"delete_repo"}`
		read     = `{"name":"delete_repo","annotations":{"readOnlyHint":true}}`
		harmless = `{"name":"delete_repo","annotations":{"readOnlyHint":false,"destructiveHint":false}}`
		hints    = `{"name":"delete_repo","annotations":{"readOnlyHint":"true","destructiveHint":null}}`
		prompt   = `{"name":"ask"}`
		resource = `{"uri":"file:///a","name":"ask"}`
		template = `{"uriTemplate":"file:///{path}","name":"ask"}`
	)
	for _, c := range []struct {
		spec  selection.Spec
		kind  selection.Kind
		entry string
		want  selection.Verdict
	}{
		{selection.Spec{}, selection.Tools, tool, selection.Verdict{}},
		{selection.Spec{Include: []string{}}, selection.Tools, tool, selection.Verdict{"not included", "include"}},
		{selection.Spec{Include: []string{}}, selection.Prompts, prompt, selection.Verdict{}},
		{selection.Spec{Exclude: []string{}}, selection.Tools, tool, selection.Verdict{}},
		{selection.Spec{Include: []string{"*"}, Exclude: []string{"x", "delete_*"}}, selection.Tools, tool, selection.Verdict{"excluded", `exclude "delete_*"`}},
		{selection.Spec{Exclude: []string{"delete_repo"}}, selection.Tools, tool, selection.Verdict{"excluded", `exclude "delete_repo"`}},
		{selection.Spec{Exclude: []string{"ask"}}, selection.Prompts, prompt, selection.Verdict{}},
		{selection.Spec{Only: "read-only"}, selection.Tools, tool, selection.Verdict{"only", "only read-only"}},
		{selection.Spec{Only: "read-only"}, selection.Tools, read, selection.Verdict{}},
		{selection.Spec{Only: "read-only"}, selection.Tools, harmless, selection.Verdict{"only", "only read-only"}},
		{selection.Spec{Only: "read-only"}, selection.Tools, hints, selection.Verdict{"only", "only read-only"}},
		{selection.Spec{Only: "non-destructive"}, selection.Tools, tool, selection.Verdict{"only", "only non-destructive"}},
		{selection.Spec{Only: "non-destructive"}, selection.Tools, read, selection.Verdict{}},
		{selection.Spec{Only: "non-destructive"}, selection.Tools, harmless, selection.Verdict{}},
		{selection.Spec{Only: "non-destructive"}, selection.Tools, hints, selection.Verdict{"only", "only non-destructive"}},
		{selection.Spec{Only: "read-only", Include: []string{"x"}}, selection.Tools, read, selection.Verdict{"not included", "include"}},
		{selection.Spec{Only: "read-only"}, selection.Prompts, prompt, selection.Verdict{}},
		{selection.Spec{Prompts: []string{}}, selection.Prompts, prompt, selection.Verdict{"not included", "prompts"}},
		{selection.Spec{Prompts: []string{"a?k"}}, selection.Prompts, prompt, selection.Verdict{}},
		{selection.Spec{Resources: []string{"ask"}}, selection.Resources, resource, selection.Verdict{"not included", "resources"}},
		{selection.Spec{Resources: []string{"file:*"}}, selection.Resources, resource, selection.Verdict{}},
		{selection.Spec{Resources: []string{"file:///{path}"}}, selection.Resources, template, selection.Verdict{}},
		{selection.Spec{Resources: []string{}}, selection.Resources, template, selection.Verdict{"not included", "resources"}},
		{selection.Spec{Include: []string{"?*"}}, selection.Tools, `{}`, selection.Verdict{"not included", "include"}},
	} {
		rules := compile(t, c.spec)
		ssetest.Want(t, fmt.Sprintf("%+v on %s", c.spec, c.entry), rules.Entry(c.kind, json.RawMessage(c.entry)), c.want)
	}
}

// A call is judged by its name alone. The caller is told when that is not enough.
func TestOnlyNeedsHints(t *testing.T) {
	for _, c := range []struct {
		spec     selection.Spec
		needs    bool
		restrict string // the kinds
	}{
		{selection.Spec{}, false, "[false false false]"},
		{selection.Spec{Only: selection.ReadOnly}, true, "[true false false]"},
		{selection.Spec{Exclude: []string{"a"}}, false, "[true false false]"},
		{selection.Spec{Prompts: []string{}}, false, "[false true false]"},
		{selection.Spec{Resources: []string{"*"}}, false, "[false false true]"},
	} {
		rules := compile(t, c.spec)
		what := fmt.Sprintf("%+v", c.spec)
		ssetest.Want(t, what+" needs hints", rules.NeedsHints(), c.needs)
		ssetest.Want(t, what+" restricts", fmt.Sprint([]bool{rules.Restricts(selection.Tools),
			rules.Restricts(selection.Prompts), rules.Restricts(selection.Resources)}), c.restrict)
		ssetest.Want(t, what+" is nil", rules == nil, c.restrict == "[false false false]")
	}
}

// A call of a tool whose hints nobody has listed is refused, and known says that a list may change that. As many
// names as no server has make the hints begin anew.
func TestCallsByHints(t *testing.T) {
	rules := compile(t, selection.Spec{Only: selection.ReadOnly, Exclude: []string{"b"}})
	var hints selection.Hints
	call := func(what, name string, reason selection.Reason, known bool) {
		t.Helper()
		v, isKnown := rules.Call(name, &hints)
		ssetest.Want(t, what, fmt.Sprint(v.Reason, " ", isKnown), fmt.Sprint(reason, " ", known))
	}
	call("before a list", "a", selection.NoHint, false)
	call("an excluded one", "b", selection.Excluded, true)
	hints.NotePage(json.RawMessage(`{"tools":[{"name":"a","annotations":{"readOnlyHint":true}},{"name":"c"},{"title":"x"}]}`))
	call("listed", "a", selection.Allowed, true)
	call("listed without", "c", selection.NoHint, true)
	for n := range 10_000 {
		hints.Note(json.RawMessage(fmt.Sprintf(`{"name":"n%d"}`, n)))
	}
	call("after very many", "a", selection.NoHint, false)
	v, known := compile(t, selection.Spec{Include: []string{"a"}}).Call("a", nil)
	ssetest.Want(t, "without only", fmt.Sprint(v.Allowed(), known), "true true")
}

// A page keeps the bytes of all that stays, and the cursor of the server.
func TestFilterPage(t *testing.T) {
	rules := compile(t, selection.Spec{Exclude: []string{"b*"}, Prompts: []string{"p"}, Resources: []string{"x:*"}})
	for name, c := range map[string]struct{ method, result, want string }{
		"tools":           {mcp.MethodListTools, `{ "tools":[ {"name":"a" , "n":1e3},{"name":"bad"},{"name":"c"}], "nextCursor":"n" }`, `{ "tools":[{"name":"a" , "n":1e3},{"name":"c"}], "nextCursor":"n" }`},
		"nothing is left": {mcp.MethodListTools, `{"tools":[{"name":"b"}]}`, `{"tools":[]}`},
		"all stay":        {mcp.MethodListTools, `{"tools":[ {"name":"a"} ]}`, `{"tools":[ {"name":"a"} ]}`},
		"prompts":         {mcp.MethodListPrompts, `{"prompts":[{"name":"p"},{"name":"q"}]}`, `{"prompts":[{"name":"p"}]}`},
		"resources":       {mcp.MethodListResources, `{"resources":[{"uri":"y:1"},{"uri":"x:1"}]}`, `{"resources":[{"uri":"x:1"}]}`},
		"templates":       {mcp.MethodListTemplates, `{"resourceTemplates":[{"uriTemplate":"x:{a}"},{"uriTemplate":"y:{a}"}]}`, `{"resourceTemplates":[{"uriTemplate":"x:{a}"}]}`},
		"no list":         {mcp.MethodListTools, `{"tools":"b"}`, `{"tools":"b"}`},
		"no object":       {mcp.MethodListTools, `null`, `null`},
		"another method":  {mcp.MethodCallTool, `{"tools":[{"name":"b"}]}`, `{"tools":[{"name":"b"}]}`},
	} {
		ssetest.Want(t, name, string(rules.FilterPage(c.method, json.RawMessage(c.result))), c.want)
	}
	var none *selection.Rules
	ssetest.Want(t, "without rules", string(none.FilterPage(mcp.MethodListTools, json.RawMessage(`{"tools":[{"name":"b"}]}`))), `{"tools":[{"name":"b"}]}`)
}

// A rule that meets nothing is usually a typing error. A rule also meets what another rule leaves out.
func TestUnmetRules(t *testing.T) {
	tools := []json.RawMessage{
		json.RawMessage(`{"name":"create_issue","annotations":{"readOnlyHint":true}}`), json.RawMessage(`{"name":"delete_repo"}`),
	}
	for _, c := range []struct {
		spec selection.Spec
		kind selection.Kind
		list []json.RawMessage
		want string
	}{
		{selection.Spec{}, selection.Tools, tools, `[]`},
		{selection.Spec{Include: []string{"*isue*", "*issue*", "get_me"}}, selection.Tools, tools, `[include "*isue*" include "get_me"]`},
		{selection.Spec{Include: []string{"*issue*"}, Exclude: []string{"delete_*", "remove_*"}}, selection.Tools, tools, `[exclude "remove_*"]`},
		{selection.Spec{Only: selection.ReadOnly}, selection.Tools, tools, `[]`},
		{selection.Spec{Only: selection.ReadOnly}, selection.Tools, tools[1:], `[only read-only]`},
		{selection.Spec{Only: selection.ReadOnly}, selection.Tools, nil, `[]`},
		{selection.Spec{Include: []string{"*"}}, selection.Tools, nil, `[include "*"]`},
		{selection.Spec{Prompts: []string{"p"}}, selection.Tools, tools, `[]`},
		{selection.Spec{Prompts: []string{"p"}}, selection.Prompts, nil, `[prompts "p"]`},
		{selection.Spec{Resources: []string{"file:*", "a:*"}}, selection.Resources, []json.RawMessage{json.RawMessage(`{"uriTemplate":"file:{a}"}`)}, `[resources "a:*"]`},
	} {
		ssetest.Want(t, fmt.Sprintf("%+v", c.spec), fmt.Sprint(compile(t, c.spec).Unmet(c.kind, c.list)), c.want)
	}
}

// The rules that meet nothing are known once a list is complete, and are said once. Resources and templates have a rule
// together.
func TestWatch(t *testing.T) {
	w := selection.NewWatch(compile(t, selection.Spec{Include: []string{"a", "b", "c"}, Resources: []string{"x:*", "y:*", "z:*"}}))
	for _, c := range []struct {
		method string
		first  bool
		result string
		want   string
	}{
		{mcp.MethodListTools, false, `{"tools":[]}`, `[]`}, // the end of a list that was begun before
		{mcp.MethodListTools, true, `{"tools":[{"name":"a"}],"nextCursor":"2"}`, `[]`},
		{mcp.MethodListTools, false, `{"tools":[{"name":"b"}]}`, `[include "c"]`},
		{mcp.MethodListTools, true, `{"tools":[]}`, `[]`}, // it was said
		{mcp.MethodListResources, true, `{"resources":[{"uri":"x:1"}]}`, `[]`},
		{mcp.MethodListTemplates, true, `{"resourceTemplates":[{"uriTemplate":"y:{a}"}]}`, `[resources "z:*"]`},
		{mcp.MethodListPrompts, true, `{"prompts":[]}`, `[]`},
		{mcp.MethodCallTool, true, `{"tools":[]}`, `[]`},
	} {
		ssetest.Want(t, c.method+" "+c.result, fmt.Sprint(w.Page(c.method, c.first, json.RawMessage(c.result))), c.want)
	}
	var none *selection.Watch
	ssetest.Want(t, "without rules", len(none.Page(mcp.MethodListTools, true, json.RawMessage(`{"tools":[]}`))), 0)
}

// A name that a hostile client sends costs a bounded number of steps, and is then left out by each rule. Names and globs
// as there are cost few.
func TestNamesOfHostileCalls(t *testing.T) {
	worst, plain := make([]string, 1000), make([]string, 1000)
	for i := range worst {
		worst[i], plain[i] = "*"+strings.Repeat("a", 254)+"b", fmt.Sprintf("*_%d_*", i)
	}
	long := strings.Repeat("a", 4<<20)
	for _, c := range []struct {
		what    string
		globs   []string
		name    string
		most    int
		decided bool
	}{
		{"megabytes, the worst globs", worst, long, selection.MaxSteps, false},
		{"megabytes, plain globs", plain, long, selection.MaxSteps, false},
		{"megabytes, globs with a beginning", []string{"delete_*", "b*"}, long, 2, true},
		{"megabytes, no special character", []string{"get_me"}, long, 0, true},
		{"a thousand characters", plain, long[:1000], selection.MaxSteps / 2, true},
		{"a short name, the worst globs", worst, long[:64], selection.MaxSteps, true},
	} {
		steps, decided := selection.Steps(c.globs, c.name)
		if steps > c.most || decided != c.decided {
			t.Errorf("%s: %d steps, decided %v, want at most %d, %v", c.what, steps, decided, c.most, c.decided)
		}
	}
	for key, spec := range map[string]selection.Spec{"include": {Include: plain}, "exclude": {Exclude: plain}, "both": {Include: []string{"a*"}, Exclude: plain}} {
		ssetest.Want(t, key, compile(t, spec).Name(selection.Tools, long).Allowed(), false)
	}
	ssetest.Want(t, "unmet", len(compile(t, selection.Spec{Include: plain[:1]}).Unmet(selection.Tools, []json.RawMessage{json.RawMessage(`{"name":"` + long + `"}`)})), 0)
}

// A glob means the same as the regular expression that is made of it, however they are composed.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"a*b*c", "abcbc"}, {"?ü*", "aü"}, {"*a*a*a*b", "aaaaaaaaaaaaaaaa"}, {"**?", "x"}, {".*", ".a"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		rules, err := selection.Compile(selection.Spec{Resources: []string{glob}})
		if err != nil {
			return
		}
		name = strings.ToValidUTF8(name, "?") // names come from JSON
		special := strings.NewReplacer(`\*`, `.*`, `\?`, `.`)
		want := regexp.MustCompile(`(?s)\A` + special.Replace(regexp.QuoteMeta(glob)) + `\z`).MatchString(name)
		if got := rules.Name(selection.Resources, name).Allowed(); got != want {
			t.Errorf("the glob %q matches %q: %v, want %v", glob, name, got, want)
		}
		entry, _ := json.Marshal(map[string]string{"uri": name})
		if unmet := rules.Unmet(selection.Resources, []json.RawMessage{entry}); (len(unmet) == 0) != want {
			t.Errorf("the glob %q on %q: %q is unmet", glob, name, unmet)
		}
	})
}

// A later request that says the same, or nothing, repeats the first one. An empty value is not nothing.
func TestNarrowingRepeats(t *testing.T) {
	none := []string(nil)
	for _, row := range []struct {
		firstURL, firstHeader, url, header []string
		want                               bool
	}{
		{none, none, none, none, true},
		{none, none, []string{"a"}, none, false},
		{[]string{"a"}, none, []string{"a"}, none, true},
		{[]string{"a"}, none, none, none, true},
		{[]string{"a"}, none, []string{"b"}, none, false},
		{[]string{"a"}, none, []string{"a"}, []string{"a"}, false},
		{[]string{"a"}, none, none, []string{""}, false},
		{[]string{"a"}, none, []string{""}, none, false},
		{none, []string{"a", "b"}, none, []string{"a,b"}, true},
		{[]string{"a"}, []string{"b"}, []string{"a"}, []string{"b"}, true},
		{[]string{"a"}, []string{"b"}, []string{"b"}, []string{"a"}, false},
	} {
		n, err := selection.Narrow(row.firstURL, row.firstHeader)
		ssetest.Must(t, err)
		if got := n.Repeats(row.url, row.header); got != row.want {
			t.Errorf("%q, %q after %q, %q: got %t", row.url, row.header, row.firstURL, row.firstHeader, got)
		}
	}
}

// Globs of names know no other special character, and without any there is no name.
func TestNames(t *testing.T) {
	names, err := selection.CompileNames([]string{"alice", "ci-*", "oauth:auth0|[x]{y}"})
	ssetest.Must(t, err)
	var all *selection.Names
	none, err := selection.CompileNames(nil)
	ssetest.Must(t, err)
	for name, want := range map[string]bool{"alice": true, "ci-1": true, "oauth:auth0|[x]{y}": true, "alic": false, "Alice": false, "ci": false, "": false} {
		ssetest.Want(t, name, fmt.Sprint(names.Has(name), all.Has(name), none.Has(name)), fmt.Sprint(want, true, false))
	}
	for _, glob := range []string{"", "!alice", "\xff", strings.Repeat("a", 257)} {
		if _, err := selection.CompileNames([]string{"x", glob}); err == nil {
			t.Errorf("the glob %.20q is taken", glob)
		}
	}
}
