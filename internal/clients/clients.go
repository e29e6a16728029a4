// Package clients has what is known of the programs that connect: how long they wait, and what they
// drop. docs/clients.md says the same to people, with where each fact comes from.
package clients

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Client is what is known of one client program. A zero field is not known, or is no limit.
type Client struct {
	// Name is what --for calls it, and Title what people do: the row of docs/clients.md begins with it.
	Name, Title string
	// Patience is how long it waits for a server's tools before it goes on without them.
	Patience time.Duration
	// Call is how long it waits for the answer to a call.
	Call time.Duration
	// Tools and Descriptions bound the number of tools, and the characters of their descriptions, over all
	// servers of the client. It drops the rest.
	Tools, Descriptions int
	// NameLength bounds the name of a tool in characters, with the name of the server and a separator in
	// front. It drops tools with longer names, or cuts the names if Cuts is set.
	NameLength int
	Cuts       bool
	// Quiet says that its HTTP client, which sends this User-Agent, ends over HTTP+SSE at events that are
	// not in the standard.
	Quiet string
}

// All are the clients that are known, by their names.
var All = []Client{
	{Name: "claude-code", Title: "Claude Code", Patience: 2 * time.Second, Call: 0},
	{Name: "cline", Title: "Cline", Call: time.Minute, NameLength: 64},
	{Name: "codex", Title: "Codex", Patience: 2 * time.Second, Call: 2 * time.Minute, NameLength: 64},
	{Name: "cursor", Title: "Cursor", NameLength: 60},
	{Name: "gemini-cli", Title: "Gemini CLI", Call: 10 * time.Minute, NameLength: 63},
	{Name: "java-sdk", Title: "Java SDK", Quiet: "Java-http-client/"},
	{Name: "kiro-cli", Title: "Kiro CLI", Patience: 30 * time.Second},
	{Name: "opencode", Title: "opencode", Patience: 30 * time.Second},
	{Name: "pi", Title: "pi", Patience: 250 * time.Millisecond},
	{Name: "qwen-code", Title: "Qwen Code", Patience: 5 * time.Second},
	{Name: "roo", Title: "Roo", Call: time.Minute, NameLength: 64, Cuts: true},
	{Name: "trae", Title: "Trae", Tools: 40, Descriptions: 8000, NameLength: 60},
	{Name: "typescript-sdk", Title: "TypeScript SDK", Call: time.Minute},
}

// Named returns the client with a name.
func Named(name string) (Client, bool) {
	i := slices.IndexFunc(All, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return All[i], true
}

// Names returns the names of all clients.
func Names() (names []string) {
	for _, c := range All {
		names = append(names, c.Name)
	}
	return names
}

// IsQuiet reports whether the client with this User-Agent ends at events that are not in the standard of
// HTTP+SSE.
func IsQuiet(userAgent string) bool {
	return slices.ContainsFunc(All, func(c Client) bool { return c.Quiet != "" && strings.HasPrefix(userAgent, c.Quiet) })
}

// Server is what matters to clients of a server.
type Server struct {
	Name  string        // as clients put it in front of the names of tools
	Boot  time.Duration // from the start of the server to its list of tools
	Tools []Tool
}

// Tool is a tool as far as clients have limits for it.
type Tool struct{ Name, Description string }

// Losses says what the client loses of a server, a sentence for each limit; none for nothing.
func (c Client) Losses(s Server) (losses []string) {
	say := func(format string, args ...any) { losses = append(losses, fmt.Sprintf(format, args...)) }
	if c.Patience > 0 && s.Boot > c.Patience {
		say("it waits %v for tools, and the server took %v: a client that begins before the server has booted has none; warm: 1 and remember, the defaults for a command, start it ahead and answer from memory",
			c.Patience, s.Boot.Round(time.Millisecond))
	}
	if c.Tools > 0 && len(s.Tools) > c.Tools {
		say("it takes %d tools over all servers, and this one has %d: it drops the rest silently", c.Tools, len(s.Tools))
	}
	characters := 0
	for _, tool := range s.Tools {
		characters += utf8.RuneCountInString(tool.Description)
	}
	if c.Descriptions > 0 && characters > c.Descriptions {
		say("it takes %d characters of descriptions over all servers, and this one has %d: it drops the rest silently", c.Descriptions, characters)
	}
	if names := s.longNames(c.NameLength); len(names) > 0 {
		does := "drops the tools"
		if c.Cuts {
			does = "cuts the names of the tools"
		}
		say("it takes names of %d characters with %q in front, and %s %s", c.NameLength, s.Name+"_", does, strings.Join(names, ", "))
	}
	return losses
}

// longNames returns the names that are longer than limit with the name of the server in front.
func (s Server) longNames(limit int) (names []string) {
	if limit == 0 {
		return nil
	}
	for _, tool := range s.Tools {
		if utf8.RuneCountInString(s.Name+"_"+tool.Name) > limit {
			names = append(names, tool.Name)
		}
	}
	return names
}

// Limits are the lowest limits that any client has for a list of tools; they are never 0.
func Limits() (least Client) {
	lowest := func(at *int, of int) {
		if of > 0 {
			*at = min(cmp.Or(*at, of), of)
		}
	}
	for _, c := range All {
		lowest(&least.Tools, c.Tools)
		lowest(&least.Descriptions, c.Descriptions)
		lowest(&least.NameLength, c.NameLength)
	}
	return least
}

// Explained says which clients have limits for lists of tools, and which.
func Explained() string {
	var lists []string
	names := map[int][]string{}
	for _, c := range All {
		if c.Tools > 0 {
			lists = append(lists, fmt.Sprintf("%s: %d tools and %d characters of descriptions over all servers", c.Title, c.Tools, c.Descriptions))
		}
		if c.NameLength > 0 {
			names[c.NameLength] = append(names[c.NameLength], c.Title)
		}
	}
	var lengths []string
	for length, of := range names {
		lengths = append(lengths, fmt.Sprintf("%s %d characters", strings.Join(of, ", "), length))
	}
	slices.Sort(lengths)
	return strings.Join(lists, "; ") + "; names, with the server's in front: " + strings.Join(lengths, "; ")
}
