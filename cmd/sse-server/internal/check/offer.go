package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// errOfPersons is why the tools of a server are not known whose clients each have the login of a person. Nothing has
// failed.
var errOfPersons = errors.New("each person logs in by a link that their client gets")

// reading is what has been read of a server.
type reading struct {
	server *config.Server
	name   string // for people
	found  handshake.Found
	err    error // why its tools are not known; nil: they are

	fromMemory bool
	took       time.Duration // from its start to its lists
	ahead      bool          // it is started ahead of clients, or its tools are remembered
}

// isFailed reports whether the server should have been read, and was not.
func (r *reading) isFailed() bool { return r.err != nil && !errors.Is(r.err, errOfPersons) }

// offer is what clients get at the URL of a server or view.
type offer struct {
	name   string
	client string // whose limits a view keeps; empty: it keeps none, or is a server
	isView bool
	// searches says that the tools are found, not listed.
	searches bool
	servers  []*reading // in the order of the view; of a server itself alone

	tools  []merge.Entry     // that can be called, in their order
	listed []json.RawMessage // what tools/list has: the same, or what finds and calls them
	left   []leftOut         // in the order of the servers and their lists
	unmet  []unmetRule
}

// leftOut is a tool that clients do not get.
type leftOut struct {
	merge.Left
	ofServer bool // a rule of the server decides, for all its views too
}

// unmetRule is a rule that meets nothing of a complete list: usually a typing error.
type unmetRule struct {
	merge.Unmet
	ofServer bool
}

// offerOf returns what clients get at the URL of a server.
func offerOf(r *reading) *offer {
	o := &offer{name: r.name, servers: []*reading{r}}
	o.listed = o.choose(r)[merge.Tools]
	for _, raw := range o.listed {
		name := selection.NameOf(selection.Tools, raw)
		o.tools = append(o.tools, merge.Entry{Raw: raw, Name: name, Origin: merge.Origin{Member: r.name, Own: name}})
	}
	return o
}

// choose returns the lists that the rules of a server leave, nil for each that is not known. It notes what they leave
// out.
func (o *offer) choose(r *reading) (lists [merge.Kinds][]json.RawMessage) {
	if r.err != nil {
		return lists
	}
	rules := r.server.Rules()
	lists = [merge.Kinds][]json.RawMessage{merge.Tools: r.found.Tools, merge.Prompts: r.found.Prompts,
		merge.Resources: r.found.Resources, merge.Templates: r.found.Templates}
	for kind, list := range lists {
		kind := merge.Kind(kind)
		left := make([]json.RawMessage, 0, len(list))
		for _, raw := range list {
			verdict := rules.Entry(kind.Rules(), raw)
			if verdict.Allowed() {
				left = append(left, raw)
				continue
			}
			origin := merge.Origin{Member: r.name, Own: selection.NameOf(kind.Rules(), raw)}
			o.note(leftOut{merge.Left{Kind: kind, Origin: origin, Reason: merge.Reason(verdict.Reason),
				By: verdict.Rule}, true})
		}
		lists[kind] = left
	}
	for _, rule := range r.found.Unmet(rules) {
		o.unmet = append(o.unmet, unmetRule{merge.Unmet{Member: r.name, Rule: rule}, true})
	}
	return lists
}

// note adds what is left out, if it is a tool.
func (o *offer) note(left leftOut) {
	if left.Kind == merge.Tools {
		o.left = append(o.left, left)
	}
}

// offerOfView returns what clients get at the URL of a view. of returns what has been read of each of its servers.
func offerOfView(v *config.View, of func(*config.Server) *reading) (*offer, error) {
	o := &offer{name: v.Name, client: v.For, isView: true, searches: v.Search}
	view, err := compose.New(v.Composed(func(string) jsonrpc.Dialer { return new(compose.View) }))
	if err != nil {
		return nil, err
	}
	in := merge.OfViews.Input(view)
	for i, m := range v.Members {
		r := of(m.Server)
		o.servers = append(o.servers, r)
		for kind, list := range o.choose(r) {
			if list != nil {
				in.Members[i].Lists[kind] = merge.NewList(merge.Kind(kind), list)
			}
		}
	}
	result := merge.Build(in)
	o.tools, o.listed = result.Lists[merge.Tools], merge.OfViews.Listed(view, result)
	for _, left := range result.Left {
		o.note(leftOut{left, false})
	}
	for _, unmet := range result.Unmet {
		o.unmet = append(o.unmet, unmetRule{unmet, false})
	}
	return o, nil
}

// isUnknown reports whether no server has said which tools it has.
func (o *offer) isUnknown() bool {
	return !slices.ContainsFunc(o.servers, func(r *reading) bool { return r.err == nil })
}

// all returns how many tools the servers list.
func (o *offer) all() (n int) {
	for _, r := range o.servers {
		if r.err == nil {
			n += len(r.found.Tools)
		}
	}
	return n
}

// toClients returns the offer as far as clients have limits for it. A view answers before its slowest server has
// booted.
func (o *offer) toClients() clients.Offer {
	offered := clients.Offer{Name: o.name, Tools: toolsOf(o.listed)}
	for _, r := range o.servers {
		if r.took <= offered.Boot {
			continue
		}
		offered.Boot, offered.Ahead = r.took, r.ahead
		if o.isView {
			offered.Slowest = r.name
		}
	}
	return offered
}

// ofServer ends the text of a rule that a server has for all its views.
func ofServer(is bool) string {
	if is {
		return " of the server"
	}
	return ""
}

// summary says how many tools there are, and for a view of which servers.
func (o *offer) summary() string {
	var names, missing []string
	for _, r := range o.servers {
		if r.err != nil {
			missing = append(missing, r.name)
		} else {
			names = append(names, r.name)
		}
	}
	text := plaintext.Count(len(o.tools), "tool")
	if all := o.all(); all > len(o.tools) {
		text = fmt.Sprintf("%d of %s", len(o.tools), plaintext.Count(all, "tool"))
	}
	if len(names) > 0 && o.isView {
		text += " of " + strings.Join(names, ", ")
	}
	if len(missing) > 0 && o.isView {
		text += "; without those of " + strings.Join(missing, ", ")
	}
	if o.searches {
		text += "; clients get three tools that find and call them"
	}
	return text
}

// warnings says what is probably a mistake in a view: rules that meet nothing, and tools that are left out although no
// rule says so. The lines of its servers have the warnings about their own rules.
func (o *offer) warnings() (lines []string) {
	for _, u := range o.unmet {
		if !u.ofServer {
			lines = append(lines, "WARNING: "+u.Warning())
		}
	}
	for _, l := range o.left {
		if text := l.Warning(); text != "" {
			lines = append(lines, "WARNING: "+text)
		}
	}
	return lines
}
