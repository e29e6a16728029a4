package merge

import (
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/selection"
)

// Result is what a view lists, and where each name and URI leads.
type Result struct {
	Lists [Kinds][]Entry // in their order
	Left  []Left
	Unmet []Unmet

	entries [Kinds][]entry           // of Lists
	taken   [Kinds]map[string]Origin // by the final name; also that of tools which a limit leaves out
	rules   map[string]*selection.Rules

	// The routes.
	named     [Prompts + 1]map[string]Origin   // by the final name
	bare      [Prompts + 1]map[string][]string // the final names, by the server's own name
	apps      map[string][]string              // the members, by the URI of the app of a tool
	uris      map[string]string                // the member, by the URI of a resource
	templates []template                       // in their order
}

// template leads from the URIs that it can make to a member.
type template struct {
	text, member string
	entry
}

// makeRoutes makes the routes of what is listed.
func (r *Result) makeRoutes() {
	for kind := range r.named {
		r.named[kind], r.bare[kind] = make(map[string]Origin), make(map[string][]string)
		for _, e := range r.Lists[kind] {
			r.named[kind][e.Name] = e.Origin
			r.bare[kind][e.Own] = append(r.bare[kind][e.Own], e.Name)
		}
	}
	for i, tool := range r.Lists[Tools] {
		if uri := r.entries[Tools][i].app; uri != "" && !slices.Contains(r.apps[uri], tool.Member) {
			r.apps[uri] = append(r.apps[uri], tool.Member)
		}
	}
	for _, e := range r.Lists[Resources] {
		r.uris[e.Name] = e.Member
	}
	for i, e := range r.Lists[Templates] {
		r.templates = append(r.templates, template{e.Name, e.Member, r.entries[Templates][i]})
	}
}

// Named returns where the final name of a tool or prompt leads.
func (r *Result) Named(kind Kind, final string) (o Origin, ok bool) {
	o, ok = r.named[kind][final]
	return o, ok
}

// Has reports whether a tool or prompt is listed, under whatever name.
func (r *Result) Has(kind Kind, o Origin) bool {
	return slices.ContainsFunc(r.bare[kind][o.Own], func(final string) bool { return r.named[kind][final] == o })
}

// Bare returns the final names of the listed tools or prompts that a server calls by this name.
func (r *Result) Bare(kind Kind, own string) []string { return r.bare[kind][own] }

// Apps returns the members that have a listed tool whose app is at the URI, in their order.
func (r *Result) Apps(uri string) []string { return r.apps[uri] }

// Resource returns the member that lists a resource.
func (r *Result) Resource(uri string) (member string, ok bool) {
	member, ok = r.uris[uri]
	return member, ok
}

// maxTemplateURI bounds the URIs that are compared with templates, in bytes: each template reads all of the URI.
const maxTemplateURI = 8 << 10

// Template returns the member that lists a template with this text, else the first with one that can make the URI, as
// far as its rules allow that.
func (r *Result) Template(uri string) (member string, ok bool) {
	for _, t := range r.templates {
		if t.text == uri {
			return t.member, true
		}
	}
	if len(uri) > maxTemplateURI {
		return "", false
	}
	for _, t := range r.templates {
		if t.canMake(uri) && r.Allows(t.member, uri) {
			return t.member, true
		}
	}
	return "", false
}

// canMake reports whether a template can make a URI. Most are told by their first characters.
func (t *template) canMake(uri string) bool {
	return t.matches != nil && strings.HasPrefix(uri, t.prefix) && t.matches.MatchString(uri)
}

// Allows reports whether the rules of a member leave a URI in the view.
func (r *Result) Allows(member, uri string) bool {
	return r.rules[member].Name(selection.Resources, uri).Allowed()
}
