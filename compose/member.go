package compose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/enum"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Member is a server of a view.
type Member struct {
	// Name names the member in errors, logs and questions to the user, and no other member may have it. With "__"
	// behind it, it is the prefix of the member's tools and prompts, unless the member has a Prefix or is the only
	// one: the names of a view with one member stay as they are.
	//
	// A Name has no colon. As a prefix it has at most 38 characters, and neither contains "__" nor ends with "_":
	// the names of two members could be the same then. A character in it that is none of A-Z, a-z, 0-9, _ and -
	// becomes "_" in the names of tools, as models take no others: the tool greet of "A b" is "A_b__greet".
	Name string
	// Upstream reaches the server. It is a *gateway.Gateway, if the member is to have memory, a log, limits, and the
	// client of the view in its PassRequest; any other upstream will do without these.
	Upstream jsonrpc.Dialer
	// Prefix takes the place of Name and "__" in the names that the view gives. It has at most 40 characters. Empty:
	// the names stay as they are, and the first of two members with one name has it. nil: Name and "__".
	Prefix *string
	// Selection says what of the server is in the view.
	Selection
	// Rename has the new names of tools, by their own names, and Describe new descriptions, by either name.
	Rename, Describe map[string]string
	// Allow reports whether a client may use the member; nil: each may. ctx is that of View.Dial: with a PassRequest of
	// the gateway in front, upstream.CallerFromContext returns the client. Allow is called when the client initializes,
	// by Replace, and with Reauthenticate for requests and after each check of the client's token. It must not wait.
	Allow func(ctx context.Context) bool
}

// Selection chooses among what a server lists. A list that is nil chooses all, an empty one nothing. Globs have * for
// any text and ? for one character.
type Selection struct {
	// Include and Exclude are globs over the server's own names of tools. Exclude wins.
	Include, Exclude []string
	// Only chooses tools by their hints, beside Include.
	Only Only
	// Prompts are globs over names of prompts, Resources over URIs and templates.
	Prompts, Resources []string
}

// Only is a choice by the hints of tools, which are the server's word. The zero value chooses all.
type Only uint8

const (
	// OnlyReadOnly, "read-only": readOnlyHint is true.
	OnlyReadOnly Only = iota + 1
	// OnlyNonDestructive, "non-destructive": readOnlyHint is true, or destructiveHint is false.
	OnlyNonDestructive
)

// onlyWords has the words of the choices, in the order of the constants.
var onlyWords = enum.Words[Only]{string(selection.ReadOnly), string(selection.NonDestructive)}

// String returns the word of o; empty for the zero value.
func (o Only) String() string { return onlyWords.String(o) }

// MarshalText returns the word of o. It fails for a value that is none of the constants, nor zero.
func (o Only) MarshalText() ([]byte, error) { return onlyWords.Marshal(o) }

// UnmarshalText sets o to the value of a word; an empty one is the zero value. Its error lists the words.
func (o *Only) UnmarshalText(word []byte) error { return onlyWords.Unmarshal(word, o) }

// Options configure a View.
type Options struct {
	// Name, Title and Version are what clients get as the serverInfo of the view. Without a Name they get the Name of
	// the gateway in front, else its Title, else "mcp-sse"; without a Version they get the version of this module.
	Name, Title, Version string
	// For is the name of a client, such as "cursor". The view keeps the limits of that client, which would drop tools
	// without a word. Any client of the project's list may be named: the error of an unknown name has all. These have
	// limits:
	//
	//	vs-code                                             the number of tools
	//	trae                                                the same, length of a name, size of all descriptions
	//	cline, codex, cursor, gemini-cli, qwen-code, roo    the length of a name
	//
	// Over a limit, the view leaves tools out: those whose name is too long, and then the last ones. The Logger gets a
	// line that names them. A client puts its name for the server in front of the name of a tool: set Name to that.
	// Empty: no limits but the view's own.
	For string
	// Search has the view list three tools of its own instead of the tools of its members: one finds these by the
	// words of a question, the others call them.
	Search bool
	// Logger receives the failures of members, rules that meet nothing, and tools that are left out. nil: the
	// Logger of the gateway in front.
	Logger *slog.Logger
}

// setup is a configuration that has been checked. It is immutable.
type setup struct {
	members []*member
	opts    Options
	alone   bool // there is one member, without a prefix
	limit   *merge.Limit
	log     *slog.Logger // nil: the gateway in front has it
}

// member is a Member that has been checked.
type member struct {
	Member
	prefix string // of final names
	rules  *selection.Rules
}

// newSetup checks a configuration. The error names everything that is wrong.
func newSetup(members []Member, opts Options) (*setup, error) {
	s := &setup{opts: opts, log: loggerOf(opts), alone: len(members) == 1 && members[0].Prefix == nil}
	var wrong []error
	switch {
	case len(members) == 0:
		wrong = append(wrong, errors.New("there is no member: name the servers of the view"))
	case len(members) > merge.MaxMembers:
		wrong = append(wrong, fmt.Errorf("there are %d members, and a view has at most %d", len(members),
			merge.MaxMembers))
	}
	names := make(map[string]bool)
	for _, given := range members {
		m, err := newMember(given)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("member %q: %w", given.Name, err))
		case names[m.Name]:
			wrong = append(wrong, fmt.Errorf("member %q is there twice", m.Name))
		case !s.alone && m.Prefix == nil && merge.MayMeet(m.Name):
			wrong = append(wrong, fmt.Errorf("member %q: the names of two members could meet: "+
				"give it a name without __ that does not end with _, or a prefix", m.Name))
		}
		names[given.Name] = true
		s.members = append(s.members, m)
	}
	if opts.For != "" && opts.Search {
		wrong = append(wrong, errors.New("for and search exclude each other: with search three tools are listed, "+
			"which are within the limits of each client: remove for"))
	}
	if opts.For != "" {
		client, ok := clients.Named(opts.For)
		if !ok {
			wrong = append(wrong, fmt.Errorf("for: %q is no client: write one of %s", opts.For,
				strings.Join(clients.Names(clients.All), ", ")))
		}
		s.limit = &merge.Limit{Client: client.Name, Tools: client.Tools, Descriptions: client.Descriptions,
			NameLength: client.NameLength, Front: client.InFront(opts.Name)}
	}
	return s, errors.Join(wrong...)
}

// newMember checks a member.
func newMember(given Member) (*member, error) {
	m := &member{Member: given, prefix: given.Name + "__"}
	var wrong []error
	if given.Name == "" {
		wrong = append(wrong, errors.New("it has no name"))
	}
	if strings.Contains(given.Name, taskColon) {
		wrong = append(wrong, errors.New("its name has a colon, which stands behind it in the ids of tasks"))
	}
	if given.Upstream == nil {
		wrong = append(wrong, errors.New("it has no upstream"))
	}
	if given.Prefix != nil {
		m.prefix = *given.Prefix
	}
	if n := utf8.RuneCountInString(m.prefix); n > merge.MaxPrefix {
		wrong = append(wrong, fmt.Errorf("the prefix %q has %d characters, and %d are allowed: set a shorter prefix",
			m.prefix, n, merge.MaxPrefix))
	}
	var err error
	m.rules, err = selection.Compile(selection.Spec{Include: given.Include, Exclude: given.Exclude,
		Only: selection.Only(given.Only.String()), Prompts: given.Prompts, Resources: given.Resources})
	if err != nil {
		wrong = append(wrong, err)
	}
	wrong = append(wrong, checkRename(given.Rename)...)
	for _, key := range []struct {
		name  string
		names map[string]string
	}{{"rename", given.Rename}, {"describe", given.Describe}} {
		for _, tool := range slices.Sorted(maps.Keys(key.names)) {
			if slices.Contains(given.Exclude, tool) {
				wrong = append(wrong, fmt.Errorf("%s: exclude leaves %q out: remove one of the two", key.name, tool))
			}
		}
	}
	return m, errors.Join(wrong...)
}

// isSame reports whether links to a member can stay when other takes its place. Upstreams that cannot be compared are
// not the same.
func (m *member) isSame(other *member) bool {
	isComparable := reflect.TypeOf(m.Upstream).Comparable()
	return m == other || m.Name == other.Name && isComparable && m.Upstream == other.Upstream
}

// checkRename returns what is wrong with the new names of tools.
func checkRename(rename map[string]string) (wrong []error) {
	before := make(map[string]string)
	for _, own := range slices.Sorted(maps.Keys(rename)) {
		name := rename[own]
		if !merge.IsNewName(name) {
			wrong = append(wrong, fmt.Errorf("rename: %q is no name: write up to 64 of A-Z, a-z, 0-9, _ and -",
				name))
		}
		if other, ok := before[name]; ok {
			wrong = append(wrong, fmt.Errorf("rename: %q and %q would both be %q", other, own, name))
		}
		before[name] = own
	}
	return wrong
}

// input returns what a result depends on, without the lists.
func (s *setup) input() merge.Input {
	in := merge.Input{Members: make([]merge.Member, len(s.members)), Alone: s.alone, Limit: s.limit}
	for i, m := range s.members {
		one := merge.Member{Name: m.Name, Prefix: m.prefix, Rules: m.rules, Rename: m.Rename, Describe: m.Describe}
		if s.alone {
			one.Prefix = ""
		}
		in.Members[i] = one
	}
	return in
}

// several reports whether a message of a member must say which one it is from.
func (s *setup) several() bool { return len(s.members) > 1 }
