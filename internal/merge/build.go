package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/selection"
)

// MaxTools bounds the tools of a Result. More are left out from the end.
const MaxTools = 10_000

// MaxTemplates bounds the templates of one server. More are left out: each is compiled, and may read each URI.
const MaxTemplates = 1000

// Input is all that a result depends on.
type Input struct {
	Members []Member // in the order of the configuration; their names are not the same
	Alone   bool     // the configuration has one member, without a prefix: names stay as they are
	Limit   *Limit   // of the client that the view is for; nil: none
}

// Member is a member with its rules and its lists.
type Member struct {
	Name, Prefix     string
	Rules            *selection.Rules
	Rename, Describe map[string]string // by a tool's own name; Describe also by its new one
	Lists            [Kinds]*List      // nil: unknown
}

// Limit has what a client takes, over all tools. A field that is 0 bounds nothing.
type Limit struct {
	Client       string // as texts call it
	Tools        int
	Descriptions int    // the characters of all descriptions
	NameLength   int    // the characters of a name, behind Front
	Front        string // what the client puts in front of names
}

// Origin says where a name leads.
type Origin struct {
	Member string
	Own    string // the name there
}

// Entry is an entry of a list, as a client is told it.
type Entry struct {
	Raw  json.RawMessage
	Name string // the final name, or the URI, or the template
	Origin
}

// Reason says why something is left out.
type Reason string

// The reasons.
const (
	Excluded           = Reason(selection.Excluded)
	NotIncluded        = Reason(selection.NotIncluded)
	NoHint             = Reason(selection.NoHint)
	NameTaken   Reason = "name taken"
	NoName      Reason = "no name"
	OverLimit   Reason = "over the limit"
)

// Left is an entry that is left out.
type Left struct {
	Kind Kind
	Name string // the final name, or the URI, or the template; empty: a rule has left it out before it got one
	Origin
	Reason Reason
	By     string // the rule, the origin that has the name, or the limit
}

// Unmet is a rule that has met nothing of a complete list.
type Unmet struct{ Member, Rule string }

// Build returns what is listed, where each name and URI leads, and what is left out, with the reason.
func Build(in Input) *Result {
	r := &Result{
		apps: make(map[string][]string), uris: make(map[string]string), rules: make(map[string]*selection.Rules),
	}
	for kind := range Kinds {
		r.taken[kind] = make(map[string]Origin)
	}
	for _, m := range in.Members {
		r.rules[m.Name] = m.Rules
		r.addNamed(&in, &m, Tools)
		r.addNamed(&in, &m, Prompts)
		r.addLocated(&m, Resources)
		r.addLocated(&m, Templates)
		r.noteUnmet(&m)
	}
	r.keepLimit(in.Limit)
	r.makeRoutes()
	return r
}

// candidate is a tool or prompt of a member, before it is known who has its final name.
type candidate struct {
	entry
	raw     json.RawMessage
	final   string
	changed bool // the final name is not that of the server behind the prefix
	verdict selection.Verdict
}

// addNamed adds the tools or prompts of a member. A name that needs no change goes before one that does, because the
// server itself gives it; both keep their places in the list.
func (r *Result) addNamed(in *Input, m *Member, kind Kind) {
	if m.Lists[kind] == nil {
		return
	}
	candidates := m.candidates(in, kind)
	taken := r.taken[kind]
	for _, changed := range []bool{false, true} {
		for _, c := range candidates {
			_, has := taken[c.final]
			if c.changed == changed && !has && c.verdict.Allowed() && (c.name != "" || in.Alone) {
				taken[c.final] = Origin{m.Name, c.name}
			}
		}
	}
	added := make(map[string]bool) // a server may list one name twice
	for _, c := range candidates {
		left := Left{Kind: kind, Origin: Origin{m.Name, c.name}}
		has := taken[c.final]
		switch {
		case !c.verdict.Allowed():
			left.Reason, left.By = Reason(c.verdict.Reason), c.verdict.Rule
		case c.name == "" && !in.Alone:
			left.Reason = NoName
		case has != left.Origin || added[c.final]:
			left.Name, left.Reason, left.By = c.final, NameTaken, has.Member+" "+strconv.Quote(has.Own)
		default:
			added[c.final] = true
			m.rewrite(kind, &c)
			r.add(kind, Entry{c.raw, c.final, left.Origin}, c.entry)
			continue
		}
		r.Left = append(r.Left, left)
	}
}

// candidates returns the tools or prompts of a member, in the order of its list.
func (m *Member) candidates(in *Input, kind Kind) []candidate {
	list := m.Lists[kind]
	all := make([]candidate, len(list.raw))
	for i, e := range list.entries {
		final := FinalName(in.Alone, m.Prefix, m.base(kind, e.name))
		verdict := m.Rules.Entry(kinds[kind].rules, list.raw[i])
		all[i] = candidate{e, list.raw[i], final, final != m.Prefix+e.name, verdict}
	}
	return all
}

// add adds an entry to a list.
func (r *Result) add(kind Kind, told Entry, known entry) {
	r.Lists[kind] = append(r.Lists[kind], told)
	r.entries[kind] = append(r.entries[kind], known)
}

// base returns the name that a rename gives, else the server's own one.
func (m *Member) base(kind Kind, own string) string {
	if renamed, ok := m.Rename[own]; ok && kind == Tools {
		return renamed
	}
	return own
}

// rewrite gives an entry its final name, and the description that the configuration has for it. The bytes of the server
// stay where they are the same.
func (m *Member) rewrite(kind Kind, c *candidate) {
	if c.final != c.name {
		c.raw = rawjson.SetMember(c.raw, rawjson.Quote(c.final), "name")
	}
	if kind != Tools {
		return
	}
	text, ok := m.Describe[c.name]
	if !ok {
		text, ok = m.Describe[m.base(kind, c.name)]
	}
	if ok {
		c.raw = rawjson.SetMember(c.raw, rawjson.Quote(text), "description")
		c.description = utf8.RuneCountInString(text)
	}
}

// addLocated adds the resources or templates of a member. Of two members with one URI the first has it.
func (r *Result) addLocated(m *Member, kind Kind) {
	list := m.Lists[kind]
	if list == nil {
		return
	}
	for i, e := range list.entries {
		left := Left{Kind: kind, Name: e.name, Origin: Origin{m.Name, e.name}}
		verdict := m.Rules.Entry(kinds[kind].rules, list.raw[i])
		has, taken := r.taken[kind][e.name]
		switch {
		case !verdict.Allowed():
			left.Reason, left.By = Reason(verdict.Reason), verdict.Rule
		case taken && has != left.Origin:
			left.Reason, left.By = NameTaken, has.Member
		case kind == Templates && i >= MaxTemplates:
			left.Reason, left.By = OverLimit, "a server has "+strconv.Itoa(MaxTemplates)+" templates"
		default: // a server may list a URI twice, under two names
			r.taken[kind][e.name] = left.Origin
			r.add(kind, Entry{list.raw[i], e.name, left.Origin}, e)
			continue
		}
		r.Left = append(r.Left, left)
	}
}

// noteUnmet adds the rules of a member that have met nothing of its lists. A rule for resources is also one for
// templates, so that it needs both lists.
func (r *Result) noteUnmet(m *Member) {
	note := func(kind selection.Kind, entries []json.RawMessage) {
		for _, rule := range m.Rules.Unmet(kind, entries) {
			r.Unmet = append(r.Unmet, Unmet{m.Name, rule})
		}
	}
	if tools := m.Lists[Tools]; tools != nil {
		note(selection.Tools, tools.raw)
		r.noteUnnamed(m, tools)
	}
	if prompts := m.Lists[Prompts]; prompts != nil {
		note(selection.Prompts, prompts.raw)
	}
	resources, templates := m.Lists[Resources], m.Lists[Templates]
	if resources != nil && templates != nil {
		note(selection.Resources, slices.Concat(resources.raw, templates.raw))
	}
}

// noteUnnamed adds the keys of rename and describe that name no tool.
func (r *Result) noteUnnamed(m *Member, tools *List) {
	known := make(map[string]bool)
	for _, e := range tools.entries {
		known[e.name] = true
	}
	for _, own := range slices.Sorted(maps.Keys(m.Rename)) {
		if !known[own] {
			r.Unmet = append(r.Unmet, Unmet{m.Name, "rename " + strconv.Quote(own)})
		}
	}
	for own, renamed := range m.Rename {
		known[renamed] = known[renamed] || known[own]
	}
	for _, name := range slices.Sorted(maps.Keys(m.Describe)) {
		if !known[name] {
			r.Unmet = append(r.Unmet, Unmet{m.Name, "describe " + strconv.Quote(name)})
		}
	}
}

// keepLimit leaves out tools with names that are too long for the client, and then tools from the end, until the
// others are within its limits.
func (r *Result) keepLimit(limit *Limit) {
	if limit == nil {
		limit = &Limit{}
	}
	tools, entries := r.Lists[Tools], r.entries[Tools]
	r.Lists[Tools], r.entries[Tools] = nil, nil
	front, characters := utf8.RuneCountInString(limit.Front), 0
	for i, tool := range tools {
		if n := front + utf8.RuneCountInString(tool.Name); limit.NameLength > 0 && n > limit.NameLength {
			r.leave(tool, fmt.Sprintf("%s takes names of %d characters with %q in front, and this one has %d",
				limit.Client, limit.NameLength, limit.Front, n))
			continue
		}
		r.add(Tools, tool, entries[i])
		characters += entries[i].description
	}
	for len(r.Lists[Tools]) > 0 {
		last := len(r.Lists[Tools]) - 1
		why := limit.over(last+1, characters)
		if why == "" {
			return
		}
		r.leave(r.Lists[Tools][last], why)
		characters -= r.entries[Tools][last].description
		r.Lists[Tools], r.entries[Tools] = r.Lists[Tools][:last], r.entries[Tools][:last]
	}
}

// over says which limit so many tools are over, with so many characters of descriptions; empty: none.
func (l *Limit) over(tools, characters int) string {
	switch {
	case l.Tools > 0 && tools > l.Tools:
		return fmt.Sprintf("%s takes %d tools", l.Client, l.Tools)
	case l.Descriptions > 0 && characters > l.Descriptions:
		return fmt.Sprintf("%s takes %d characters of descriptions", l.Client, l.Descriptions)
	case tools > MaxTools:
		return fmt.Sprintf("a view has at most %d tools", MaxTools)
	default:
		return ""
	}
}

// leave notes a tool that a limit leaves out.
func (r *Result) leave(tool Entry, why string) {
	r.Left = append(r.Left, Left{Tools, tool.Name, tool.Origin, OverLimit, why})
}
