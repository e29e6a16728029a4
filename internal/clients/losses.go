package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Offer is what matters to clients of a server.
type Offer struct {
	Name string        // as clients put it in front of the names of tools
	Boot time.Duration // from the start of the server to its list of tools
	// Ahead says that the gateway starts it ahead of its clients, or remembers its tools: only a client
	// that comes before it has booted for the first time has to wait.
	Ahead bool
	Tools []Tool
	// Slowest is the server of a view whose boot that is; empty: it is no view.
	Slowest string
}

// Tool is a tool as far as clients have limits for it.
type Tool struct {
	Name, Description string
	InputSchema       json.RawMessage
}

// fewer is what to do about a tool that a client does not take.
const fewer = "; include and exclude leave tools out, and an option of the server or of the client may do so"

// within is what to do about too many tools.
func (c Client) within() string {
	return fewer + "; a view with for: " + c.Name + " leaves out what is over it"
}

// Losses says what the client loses of a server and what to do about it, a sentence for each limit that
// the server is over; none for nothing. It leaves out what only calls would show: see Untried.
func (c Client) Losses(o Offer) (losses []string) {
	say := func(format string, args ...any) { losses = append(losses, fmt.Sprintf(format, args...)) }
	switch {
	case c.Patience <= 0 || o.Boot <= c.Patience:
	case o.Slowest != "":
		say("it waits %v for tools, and %s took %v%s", c.Patience, o.Slowest, o.Boot.Round(time.Millisecond),
			c.remedyOfView(o))
	default:
		say("it waits %v for tools and goes on without, and the server took %v%s",
			c.Patience, o.Boot.Round(time.Millisecond), c.remedy(o))
	}
	if c.Tools > 0 && len(o.Tools) > c.Tools {
		say("it takes %d tools over all servers, and this one has %d: it %s%s", c.Tools, len(o.Tools), c.Over,
			c.within())
	}
	if n := o.characters(); c.Descriptions > 0 && n > c.Descriptions {
		say("it takes %d characters of descriptions over all servers, and this one has %d, "+
			"the longest that of %s: it %s%s", c.Descriptions, n, o.longest(), c.Over, c.within())
	}
	isCut := func(t Tool) bool { return c.Description > 0 && length(t.Description) > c.Description }
	if names := o.names(isCut); len(names) > 0 {
		say("it cuts a description at %d characters, as that of %s: let it begin with what matters",
			c.Description, some(names))
	}
	isTooLong := func(t Tool) bool { return c.NameLength > 0 && length(c.InFront(o.Name)+t.Name) > c.NameLength }
	if names := o.names(isTooLong); len(names) > 0 {
		does := "what it does with them is unknown"
		if c.LongNames != "" {
			does = "it " + c.LongNames
		}
		say("it takes names of %d characters with %q in front, and longer are %s: %s; "+
			"a shorter name of the server in its configuration makes room",
			c.NameLength, c.InFront(o.Name), some(names), does)
	}
	if names := o.names(func(t Tool) bool { return t.hasAny(c.Keywords) }); len(names) > 0 {
		say("it does not take %s at the top of a schema, as in that of %s: it %s%s",
			list(c.Keywords, "or"), some(names), c.Schemas, fewer)
	}
	return losses
}

// remedy says what helps against a boot that takes longer than the client waits.
func (c Client) remedy(o Offer) (text string) {
	if o.Ahead {
		return ": only a client that comes while the server boots for the first time has none, " +
			"because sse-server starts the server ahead or remembers its tools"
	}
	if text = "; --warm 1 starts it ahead of its clients"; c.Longer != "" {
		text += ", or in the client " + c.Longer
	}
	return text
}

// remedyOfView says what helps if a server of a view boots for longer than the client waits.
func (c Client) remedyOfView(o Offer) string {
	if o.Ahead {
		return ": only a list while that server boots for the first time is without its tools, " +
			"because sse-server starts the server ahead or remembers its tools"
	}
	return ": a list before that is without its tools, and the client is told when they are there; " +
		"--warm 1 starts the server ahead of its clients"
}

// Use says how much of a limit a server needs.
type Use struct {
	What  string `json:"what"` // as texts call it
	Used  int    `json:"used"`
	Limit int    `json:"limit"`
}

// The limits of lists.
const (
	UsedTools        = "tools"
	UsedDescriptions = "characters of descriptions"
	UsedDescription  = "characters in the longest description"
	UsedName         = "characters in the longest name"
)

// Uses says how much of each limit of the client that is about lists a server needs; none: no such limit is known.
func (c Client) Uses(o Offer) (uses []Use) {
	description, name := 0, 0
	for _, t := range o.Tools {
		description = max(description, length(t.Description))
		name = max(name, length(c.InFront(o.Name)+t.Name))
	}
	for _, use := range []Use{
		{UsedTools, len(o.Tools), c.Tools},
		{UsedDescriptions, o.characters(), c.Descriptions},
		{UsedDescription, description, c.Description},
		{UsedName, name, c.NameLength},
	} {
		if use.Limit > 0 {
			uses = append(uses, use)
		}
	}
	return uses
}

// Untried says what the client may lose that only calls would show; none if nothing is known.
func (c Client) Untried() (losses []string) {
	if c.Call > 0 {
		losses = append(losses, fmt.Sprintf("a call that takes longer than %v: it gives up", c.Call))
	}
	if c.Result > 0 {
		losses = append(losses,
			fmt.Sprintf("a result of more than %d %s: it %s", c.Result, c.ResultUnit, c.LongResults))
	}
	return losses
}

// Unknown says which of its limits are not known; none if all are.
func (c Client) Unknown() (limits []string) {
	for _, limit := range []struct {
		name  string
		known bool
	}{
		{"how long it waits for tools", c.Patience > 0},
		{"how long it waits for a call", c.Call > 0},
		{"how many tools it takes", c.Tools > 0},
		{"how long descriptions may be", c.Descriptions > 0 || c.Description > 0},
		{"how long names may be", c.NameLength > 0},
		{"which schemas it takes", len(c.Keywords) > 0},
		{"how large results may be", c.Result > 0},
	} {
		if !limit.known {
			limits = append(limits, limit.name)
		}
	}
	return limits
}

// Drops says which clients drop tools of a server with so many tools, characters of descriptions and
// characters in the longest name, each with its limit; none if no client is known to.
func Drops(server string, tools, characters, longest int) (clients []string) {
	for _, c := range All {
		if c.Tools > 0 && tools > c.Tools {
			clients = append(clients, fmt.Sprintf("%s: %d tools over all servers", c.Title, c.Tools))
		}
		if c.Descriptions > 0 && characters > c.Descriptions {
			clients = append(clients,
				fmt.Sprintf("%s: %d characters of descriptions over all servers", c.Title, c.Descriptions))
		}
		if c.LongNames == dropsTools && length(c.InFront(server))+longest > c.NameLength {
			clients = append(clients,
				fmt.Sprintf("%s: names of %d characters with %q in front", c.Title, c.NameLength, c.InFront(server)))
		}
	}
	return clients
}

// InFront returns what the client puts in front of the names of a server's tools. One of which that is not
// known needs one character at least to separate the two names.
func (c Client) InFront(server string) string {
	return strings.Replace(cmp.Or(c.Front, "%s_"), "%s", server, 1)
}

// names returns the names of the tools that are meant.
func (o Offer) names(means func(Tool) bool) (names []string) {
	for _, t := range o.Tools {
		if means(t) {
			names = append(names, t.Name)
		}
	}
	return names
}

// characters returns how many there are in all descriptions.
func (o Offer) characters() (n int) {
	for _, t := range o.Tools {
		n += length(t.Description)
	}
	return n
}

// longest returns the name of a tool that has the longest description. There must be one.
func (o Offer) longest() string {
	return slices.MaxFunc(o.Tools, func(a, b Tool) int { return length(a.Description) - length(b.Description) }).Name
}

// hasAny reports whether one of the keywords is at the top of the tool's input schema.
func (t Tool) hasAny(keywords []string) bool {
	if len(keywords) == 0 || !bytes.HasPrefix(bytes.TrimSpace(t.InputSchema), []byte("{")) {
		return false
	}
	var top map[string]json.RawMessage
	_ = json.Unmarshal(t.InputSchema, &top) // it is a part of valid JSON
	return slices.ContainsFunc(keywords, func(keyword string) bool { return top[keyword] != nil })
}

// some lists names, the first ten of many.
func some(names []string) string {
	const most = 10
	if len(names) <= most {
		return list(names, "and")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// list puts commas between words, and a word between the last two.
func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

func length(text string) int { return utf8.RuneCountInString(text) }
