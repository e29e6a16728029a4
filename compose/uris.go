package compose

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The bounds of the URIs that results have named to a client. The oldest go; one that is too long is not kept.
const (
	maxNamedURIs     = 1024
	maxNamedURI      = 8 << 10
	maxNamedURIBytes = 256 << 10
)

// namedURIs are URIs that results have named to a client, with the members that gave these results.
type namedURIs struct {
	members map[string]string
	order   []string // the oldest first
	bytes   int      // of all URIs
}

// note notes URIs of a member. The newest result decides.
func (n *namedURIs) note(member string, uris []string) {
	if n.members == nil {
		n.members = make(map[string]string)
	}
	for _, uri := range uris {
		if len(uri) > maxNamedURI {
			continue
		}
		if _, known := n.members[uri]; !known {
			n.order = append(n.order, uri)
			n.bytes += len(uri)
		}
		n.members[uri] = member
		for len(n.order) > maxNamedURIs || n.bytes > maxNamedURIBytes {
			n.bytes -= len(n.order[0])
			delete(n.members, n.order[0])
			n.order = n.order[1:]
		}
	}
}

// urisIn returns the URIs that a result names: of links to resources and of embedded resources, in the content of a
// tool's result or of a prompt's messages, and of what a read returns.
func urisIn(result json.RawMessage) (uris []string) {
	if !bytes.Contains(result, []byte(`"uri"`)) {
		return nil
	}
	add := func(block json.RawMessage) {
		for _, path := range [][]string{{"uri"}, {"resource", "uri"}} {
			if uri, ok := rawjson.MemberText(block, path...); ok {
				uris = append(uris, uri)
			}
		}
	}
	for _, member := range []string{"content", "contents"} {
		blocks, _ := rawjson.Member(result, member)
		rawjson.Each(blocks, add)
	}
	messages, _ := rawjson.Member(result, "messages")
	rawjson.Each(messages, func(message json.RawMessage) {
		block, _ := rawjson.Member(message, "content")
		add(block)
	})
	return uris
}

// judged is what rules say of a URI. They are asked while no lock is held: a URI of a megabyte takes a while.
type judged struct {
	uri     string
	allowed map[*selection.Rules]bool
}

// judge returns what the rules of the members say of the URI of a request; nil if it has none, or no rule is about
// URIs.
func judge(m *jsonrpc.Message, of *setup) *judged {
	p, ok := placeOf(m)
	if !ok || p.at[len(p.at)-1] != "uri" {
		return nil
	}
	uri, _ := m.Param(p.at...).Text()
	return judgeURI(uri, of.members...)
}

// judgeURI returns what the rules of members say of a URI; nil if none is about URIs.
func judgeURI(uri string, members ...*member) (j *judged) {
	for _, one := range members {
		if !one.rules.Restricts(selection.Resources) {
			continue
		}
		if j == nil {
			j = &judged{uri, make(map[*selection.Rules]bool)}
		}
		j.allowed[one.rules] = one.rules.Name(selection.Resources, uri).Allowed()
	}
	return j
}

// allows reports whether rules leave a URI in the view. Rules that have not been asked, because they are newer, are
// asked now.
func (j *judged) allows(rules *selection.Rules, uri string) bool {
	if j != nil && j.uri == uri {
		if allowed, ok := j.allowed[rules]; ok {
			return allowed
		}
	}
	return rules.Name(selection.Resources, uri).Allowed()
}

// resource finds the member of a URI. A list that is on its way may have it.
func resource(s *session, r request, uri string) (destination, *jsonrpc.Error, bool) {
	if l := s.only(); l != nil && !l.m.rules.Restricts(selection.Resources) {
		return destination{link: l, own: uri}, nil, false // lists of resources are not complete by MCP
	}
	s.want(merge.Resources)
	s.want(merge.Templates)
	for _, c := range s.candidates(r, uri) {
		if l := s.linkTo(c.member); l != nil && r.judged.allows(l.m.rules, uri) {
			return destination{link: l, own: uri}, nil, c.wait
		}
		if c.told { // the request is not meant for another one
			break
		}
	}
	wait := s.awaits(r, merge.Tools, uri, "") || s.awaits(r, merge.Resources, uri, "") ||
		s.awaits(r, merge.Templates, uri, "")
	return destination{}, unknownResource(uri), wait
}

// unknownResource returns the error of a URI that nobody has. A client has written the URI: one that is too long is
// not in the error.
func unknownResource(uri string) *jsonrpc.Error {
	fault := jsonrpc.Errorf(mcp.CodeResourceNotFound, "resource not found")
	if len(uri) <= maxNamedURI {
		fault.Data = map[string]string{"uri": uri}
	}
	return fault
}

// awaits reports whether a list that is on its way may have a URI: of a member before the named one, or of any member
// if the name is empty. A member that is known to be slow is not waited for.
func (s *session) awaits(r request, kind merge.Kind, uri, before string) bool {
	for _, l := range s.links {
		if l.m.Name == before {
			return false
		}
		if l.pending(kind) && r.judged.allows(l.m.rules, uri) && !l.isSlow() {
			return true
		}
	}
	return false
}

// candidate is a member that may have a URI.
type candidate struct {
	member string
	wait   bool // a list that is on its way may have a better one
	told   bool // the client was shown that the member has it
}

// candidates returns the members that may have a URI, the best first: those with a listed tool whose app is there, of
// which the one that the client called last; the one whose result named it; the one that lists it; the first one with
// a template.
func (s *session) candidates(r request, uri string) (all []candidate) {
	for _, list := range s.seen(merge.Tools) {
		wasTold := func(member string) bool { return list == s.told[merge.Tools] && list.Allows(member, uri) }
		apps := list.Apps(uri)
		if slices.Contains(apps, s.lastCalled) {
			all = append(all, candidate{member: s.lastCalled, told: wasTold(s.lastCalled)})
		}
		for _, member := range apps {
			all = append(all, candidate{member: member, told: wasTold(member)})
		}
	}
	if member, ok := s.named.members[uri]; ok {
		all = append(all, candidate{member: member})
	}
	if told := s.told[merge.Resources]; told != nil {
		if member, ok := told.Resource(uri); ok { // the client was shown it there
			all = append(all, candidate{member: member, told: true})
		}
	}
	if member, ok := s.newest().Resource(uri); ok {
		all = append(all, candidate{member: member, wait: s.awaits(r, merge.Resources, uri, member)})
	}
	if told := s.told[merge.Templates]; told != nil {
		if member, ok := told.Template(uri); ok {
			all = append(all, candidate{member: member, wait: s.awaits(r, merge.Resources, uri, ""), told: true})
		}
	}
	if member, ok := s.newest().Template(uri); ok {
		wait := s.awaits(r, merge.Resources, uri, "") || s.awaits(r, merge.Templates, uri, member)
		all = append(all, candidate{member: member, wait: wait})
	}
	return all
}

// template finds the member of a template, or of a URI that one makes, for completion.
func template(s *session, r request, uri string) (destination, *jsonrpc.Error, bool) {
	to, fault, wait := resource(s, r, uri)
	if fault != nil {
		fault = unknown("template")(uri)
	}
	return to, fault, wait
}
