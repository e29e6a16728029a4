package handshake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/selection"
)

// maxPages bounds the pages of a list that Try reads: a server may never end its list.
const maxPages = 1000

// Found is what a server says of itself, and what it lists.
type Found struct {
	Server
	About                         About
	Tools                         []json.RawMessage
	NoTools                       error // why there is no list of tools, although the server has some
	Prompts, Resources, Templates []json.RawMessage
	// Unread are the methods of lists that are not known: nobody has read them, or they were too long to be remembered.
	Unread []string
	// Memory is what its processes hold, in bytes; 0 where that is unknown.
	Memory int64
}

// Knows reports whether the list of a method is known.
func (f *Found) Knows(method string) bool { return !slices.Contains(f.Unread, method) }

// Unmet returns the rules that meet nothing of the lists that are known.
func (f *Found) Unmet(rules *selection.Rules) (unmet []string) {
	if f.NoTools == nil && f.Knows(mcp.MethodListTools) {
		unmet = rules.Unmet(selection.Tools, f.Tools)
	}
	if f.Knows(mcp.MethodListPrompts) {
		unmet = append(unmet, rules.Unmet(selection.Prompts, f.Prompts)...)
	}
	if f.Knows(mcp.MethodListResources) && f.Knows(mcp.MethodListTemplates) {
		both := slices.Concat(f.Resources, f.Templates) // one rule is for both
		unmet = append(unmet, rules.Unmet(selection.Resources, both)...)
	}
	return unmet
}

// Try starts a session and ends it. It returns what the server says of itself and lists. The supplier
// must run handshakes.
func (s *source) Try(ctx context.Context) (Found, error) {
	until := time.Now().Add(s.Options().StartTimeout) // bounds the lists, too
	session, err := s.startOwn(ctx)
	if err != nil {
		return Found{}, err
	}
	defer session.Close(errNotNeeded)
	return session.find(ctx, until)
}

// tryAndLearn is Try, and remembers what the server says.
func (s *source) tryAndLearn(ctx context.Context) (Found, error) {
	until := time.Now().Add(s.Options().StartTimeout)
	session, err := s.startOwn(ctx)
	if err != nil {
		return Found{}, err
	}
	defer session.Close(errNotNeeded)
	found, err := session.findAndLearn(ctx, until)
	if err == nil && session.Looked() != nil {
		session.learnVersions(ctx)
	}
	return found, err
}

// findAndLearn is find, and remembers what the server says, unless clients have used the
// session before.
func (s *Session) findAndLearn(ctx context.Context, until time.Time) (Found, error) {
	answers := s.awaitLook(ctx)
	if answers == nil {
		return s.find(ctx, until)
	}
	found, whole := foundIn(answers)
	if !whole { // the list is too long to be remembered, or cannot be read: find says why
		return s.find(ctx, until)
	}
	found.Memory = s.memory()
	return found, nil
}

// Remembered returns what is remembered of the server for any client, as Try returns it. It reports false if
// nothing is, or it is older than SupplierOptions.RememberFor.
func (s *source) Remembered() (Found, bool) {
	memory := s.Options().Memory
	if memory == nil {
		return Found{}, false
	}
	who := []string{remember.Own}
	if !s.Options().Authenticates {
		who = append(who, remember.Principal(""))
	}
	last := memory.Last(who...)
	if last == nil || time.Since(last.Learned) >= s.Options().RememberFor {
		return Found{}, false
	}
	return foundIn(last)
}

// Known returns what is known of the server without asking it: what is remembered of it for any client, else what it
// last said, with its last list of tools that was read to the end. isListed reports whether there is such a list. What
// a server may have said to one client alone, because it gets something of each, is not known.
func (s *source) Known() (found Found, isListed bool) {
	if found, ok := s.Remembered(); ok {
		return found, true
	}
	if server := s.server.Load(); server != nil {
		found.Server = *server
	}
	if about := s.about.Load(); about != nil {
		found.About = *about
	}
	found.Tools, isListed = s.tools.Listed()
	found.Unread = []string{mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListTemplates}
	if !isListed {
		found.Unread = append(found.Unread, mcp.MethodListTools)
	}
	return found, isListed
}

// KnownTools returns the size of the server's list of tools: of the last one that was read, or else of the remembered
// one; nil if there is none.
func (s *source) KnownTools() *multiplex.ToolList {
	if list := s.tools.List(); list != nil {
		return list
	}
	found, isKnown := s.Remembered()
	if !isKnown {
		return nil
	}
	return s.tools.Count(found.Tools)
}

// foundIn returns what answers say of a server. It reports false if they lack a list of tools that it has.
func foundIn(answers *remember.Answers) (found Found, whole bool) {
	result := ResultOf(answers)
	found.Server, found.About = result.Server(), result.About()
	items := func(method, member string) []json.RawMessage {
		list, ok := answers.Items(method, member)
		if !ok && !answers.Lacks(method) {
			found.Unread = append(found.Unread, method)
		}
		return list
	}
	found.Tools = items(mcp.MethodListTools, "tools")
	found.Prompts = items(mcp.MethodListPrompts, "prompts")
	found.Resources = items(mcp.MethodListResources, "resources")
	found.Templates = items(mcp.MethodListTemplates, "resourceTemplates")
	return found, found.Knows(mcp.MethodListTools)
}

// find returns what the server of a session says of itself, and lists until a time. A list of tools that
// cannot be read is no fault of the start; some servers declare prompts and resources, and have none. The
// error is that of ctx.
func (s *Session) find(ctx context.Context, until time.Time) (found Found, _ error) {
	found.Server = s.Result().Server()
	whole := ctx
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, s.source.Options().Session.RequestTimeout)
	defer cancel()
	found.Tools, found.NoTools = s.list(ctx, "tools", mcp.MethodListTools, "tools")
	if whole.Err() != nil {
		return found, found.NoTools
	}
	if found.NoTools == nil && len(found.Tools) > 0 && !s.source.Options().Forwards {
		page, err := json.Marshal(map[string]any{"tools": found.Tools})
		if err == nil {
			s.source.tools.NoteList([]json.RawMessage{page})
		}
	}
	found.Prompts, _ = s.list(ctx, "prompts", mcp.MethodListPrompts, "prompts")
	found.Resources, _ = s.list(ctx, "resources", mcp.MethodListResources, "resources")
	found.Templates, _ = s.list(ctx, "resources", mcp.MethodListTemplates, "resourceTemplates")
	found.Memory = s.memory()
	return found, nil
}

// memory returns what the processes of the server hold, in bytes; 0 where that is unknown.
func (s *Session) memory() int64 {
	if process, ok := s.conn.(interface{ Memory() int64 }); ok {
		return process.Memory()
	}
	return 0
}

// list reads all pages of a list, if the server has such a kind. member is where the results have it.
func (s *Session) list(ctx context.Context, kind, method, member string) (all []json.RawMessage, err error) {
	if !s.Result().Advertises(kind) {
		return nil, nil
	}
	for page, err := range pages.Read(maxPages, func(params json.RawMessage) (json.RawMessage, error) {
		response, err := s.Call(ctx, method, params)
		if err == nil && response.Error() != nil {
			err = fmt.Errorf("the server answered %s", response.Error())
		}
		if err != nil {
			return nil, err
		}
		return response.Result(), nil
	}) {
		if err != nil {
			return all, fmt.Errorf("list %s: %w", member, err)
		}
		list, _ := rawjson.Member(page.Result, member)
		rawjson.Each(list, func(one json.RawMessage) { all = append(all, one) })
	}
	return all, nil
}
