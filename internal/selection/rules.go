package selection

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Kind is a kind of things that a server lists.
type Kind uint8

// The kinds. Resources are resources and their templates: one rule is for both, over URIs and templates.
const (
	Tools Kind = iota
	Prompts
	Resources
)

// Only is a choice among tools by their hints. A tool without hints is never chosen.
type Only string

// The values of Only.
const (
	All            Only = ""
	ReadOnly       Only = "read-only"       // readOnlyHint is true
	NonDestructive Only = "non-destructive" // readOnlyHint is true, or destructiveHint is false
)

// Spec is what users write. A list that is nil chooses all, an empty one nothing.
type Spec struct {
	// Include and Exclude are globs over names of tools. Exclude wins.
	Include, Exclude []string
	// Only chooses tools by their hints, beside Include.
	Only Only
	// Prompts are globs over names of prompts, Resources over URIs and templates.
	Prompts, Resources []string
}

// Rules are the rules for one server, compiled. A nil *Rules leaves nothing out. Rules are safe for concurrent use.
type Rules struct {
	chosen  [Resources + 1]*globs // by kind; nil: all
	exclude *globs                // of tools; nil: none
	only    Only
}

// Compile returns the rules of a Spec, nil for one that leaves nothing out. The error names each rule that cannot be
// read, by its key in the configuration, and says what to write.
func Compile(spec Spec) (*Rules, error) {
	r := &Rules{only: spec.Only}
	var wrong []error
	compile := func(key string, kind Kind, list []string) *globs {
		if list == nil {
			return nil
		}
		g, err := compileGlobs(kind, list)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", key, err))
		}
		return g
	}
	r.chosen[Tools] = compile("include", Tools, spec.Include)
	r.exclude = compile("exclude", Tools, spec.Exclude)
	r.chosen[Prompts] = compile("prompts", Prompts, spec.Prompts)
	r.chosen[Resources] = compile("resources", Resources, spec.Resources)
	switch spec.Only {
	case All, ReadOnly, NonDestructive:
	default:
		wrong = append(wrong, fmt.Errorf("only: %q is no choice: write %s or %s", spec.Only, ReadOnly, NonDestructive))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	if *r == (Rules{}) {
		return nil, nil
	}
	return r, nil
}

// Reason says why something is left out.
type Reason string

// The reasons. Allowed is that of what is not left out.
const (
	Allowed     Reason = ""
	Excluded    Reason = "excluded"
	NotIncluded Reason = "not included"
	NoHint      Reason = "only"
)

// Verdict is what the rules say of one name.
type Verdict struct {
	Reason Reason
	Rule   string // the rule that decided, as in the configuration: exclude "delete_*"
}

// Allowed reports whether the name is not left out.
func (v Verdict) Allowed() bool { return v.Reason == Allowed }

// Name returns the verdict of the globs on the name of a tool or prompt, or on a URI or template. Rules with Only may
// still leave a tool out: see NeedsHints. A name that is too long to be judged in a short time is left out, and so is a
// URI with a segment . or .. in it, where resources are chosen: a server may read it as another URI than the globs.
func (r *Rules) Name(kind Kind, name string) Verdict {
	if r == nil {
		return Verdict{}
	}
	if kind == Tools && r.exclude != nil {
		if o, glob := r.exclude.match(name); o != unmet {
			return Verdict{Excluded, "exclude " + strconv.Quote(glob)}
		}
	}
	if g := r.chosen[kind]; g != nil {
		if o, _ := g.match(name); o != met || kind == Resources && hasDotSegment(name) {
			return Verdict{NotIncluded, key(kind)}
		}
	}
	return Verdict{}
}

// escapes are the characters of dot segments in a URI that may be written with a percent sign.
var escapes = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`)

// hasDotSegment reports whether a URI has a segment . or .., also one that is escaped once. Some servers take a
// backslash for a slash.
func hasDotSegment(uri string) bool {
	isEnd := func(r rune) bool { return strings.ContainsRune(`:/\?#`, r) }
	for segment := range strings.FieldsFuncSeq(escapes.Replace(uri), isEnd) {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// NeedsHints reports whether a verdict on a tool needs its hints, and so its entry in a list.
func (r *Rules) NeedsHints() bool { return r != nil && r.only != All }

// Restricts reports whether the rules could leave out something of a kind.
func (r *Rules) Restricts(kind Kind) bool {
	return r != nil && (r.chosen[kind] != nil || kind == Tools && (r.exclude != nil || r.only != All))
}

// Entry returns the verdict on an entry of a list. An entry without a name is judged as if its name were empty.
func (r *Rules) Entry(kind Kind, entry json.RawMessage) Verdict {
	if !r.Restricts(kind) {
		return Verdict{}
	}
	v := r.Name(kind, NameOf(kind, entry))
	if v.Allowed() && kind == Tools && r.NeedsHints() && !r.only.allows(mcp.HintsOf(entry)) {
		return r.noHint()
	}
	return v
}

// key returns the key of the configuration that chooses things of a kind.
func key(kind Kind) string {
	switch kind {
	case Tools:
		return "include"
	case Prompts:
		return "prompts"
	default:
		return "resources"
	}
}

// NameOf returns the name by which the rules know an entry of a list: that of a tool or prompt, the URI of a resource,
// or the template. It is empty if there is none.
func NameOf(kind Kind, entry json.RawMessage) string {
	if kind != Resources {
		name, _ := rawjson.MemberText(entry, "name")
		return name
	}
	if uri, ok := rawjson.MemberText(entry, "uri"); ok {
		return uri
	}
	template, _ := rawjson.MemberText(entry, "uriTemplate")
	return template
}

// ListOf returns the kind that a method lists, and the member of its result that has the entries. It reports false for
// a method that lists nothing which the rules know.
func ListOf(method string) (kind Kind, member string, ok bool) {
	switch method {
	case mcp.MethodListTools:
		return Tools, "tools", true
	case mcp.MethodListPrompts:
		return Prompts, "prompts", true
	case mcp.MethodListResources:
		return Resources, "resources", true
	case mcp.MethodListTemplates:
		return Resources, "resourceTemplates", true
	default:
		return 0, "", false
	}
}

// FilterPage returns the result of a method that lists something, without the entries that the rules leave out. All
// other bytes stay as they are, the cursor among them. It returns any other result unchanged.
func (r *Rules) FilterPage(method string, result json.RawMessage) json.RawMessage {
	kind, member, ok := ListOf(method)
	if !ok || !r.Restricts(kind) {
		return result
	}
	list, ok := rawjson.Member(result, member)
	if !ok {
		return result
	}
	left := false
	kept := rawjson.Filter(list, func(entry json.RawMessage) bool {
		allowed := r.Entry(kind, entry).Allowed()
		left = left || !allowed
		return allowed
	})
	if !left {
		return result
	}
	return rawjson.ReplaceMember(result, kept, member)
}

// Unmet returns the rules of a kind that meet none of the entries, as in the configuration: include "*isue*". The
// entries must be those of the complete lists, for resources also the templates. Such a rule is usually a typing error.
func (r *Rules) Unmet(kind Kind, entries []json.RawMessage) (rules []string) {
	if !r.Restricts(kind) {
		return nil
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = NameOf(kind, entry)
	}
	note := func(key string, g *globs) {
		if g == nil {
			return
		}
		for _, glob := range g.given {
			if !meets(glob, names) {
				rules = append(rules, key+" "+strconv.Quote(glob))
			}
		}
	}
	note(key(kind), r.chosen[kind])
	if kind != Tools {
		return rules
	}
	note("exclude", r.exclude)
	if r.only != All && len(entries) > 0 {
		met := false
		for _, entry := range entries {
			met = met || r.only.allows(mcp.HintsOf(entry))
		}
		if !met {
			rules = append(rules, "only "+string(r.only))
		}
	}
	return rules
}

// meets reports whether a glob matches one of the names. A server wrote them: a glob that is undecided counts as one
// that matches, because it is no typing error for certain.
func meets(glob string, names []string) bool {
	for _, name := range names {
		steps := maxSteps
		if matches(glob, name, &steps) != unmet {
			return true
		}
	}
	return false
}
