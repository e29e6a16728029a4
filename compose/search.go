package compose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/toolsearch"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The tools of a view whose tools are found, not listed.
const (
	findTools = "find_tools"
	readTool  = "read_tool"
	callTool  = "call_tool"
)

// The bounds of what they answer.
const (
	maxFound    = 10  // tools of one question
	maxSchemas  = 20  // tools whose schemas are asked for together
	maxSentence = 200 // characters of a sentence about a tool
	maxNear     = 3   // tools that an error names
)

// searchable is what a result has for the search.
type searchable struct {
	index func() *toolsearch.Index
}

func newSearchable(r *result) *searchable {
	return &searchable{index: sync.OnceValue(func() *toolsearch.Index {
		tools := make([]toolsearch.Tool, len(r.Lists[merge.Tools]))
		for i, e := range r.Lists[merge.Tools] {
			tools[i] = toolsearch.Tool{Name: e.Name, Raw: e.Raw}
		}
		return toolsearch.New(tools)
	})}
}

// Searches reports whether the tools of the view are found, not listed.
func (v *View) Searches() bool { return v.configured().opts.Search }

// Called returns the name of the tool that a tools/call is about: that in the arguments of read_tool and call_tool,
// where tools are found, else the one that it names. It is empty if no name can be read.
func (v *View) Called(m *jsonrpc.Message) string {
	at := m.Param("name")
	if name, _ := at.Text(); v.Searches() && (name == readTool || name == callTool) {
		at = m.Param("arguments", "name")
	}
	name, _ := at.Text()
	if at.Ambiguous {
		return ""
	}
	return name
}

// unwrap takes a call of the view's own tools. find_tools is answered; then done is true. A call of the others becomes
// the call of the tool that they name, under the same number and with all else of the request. Any other request stays.
func (s *session) unwrap(r request) (_ request, done bool) {
	if !s.setup.opts.Search || r.m.Method != mcp.MethodCallTool {
		return r, false
	}
	at := r.m.Param("name")
	name, _ := at.Text()
	switch {
	case at.Ambiguous: // it is refused where it is routed
	case name == findTools:
		s.find(r)
		return r, true
	case name == readTool || name == callTool:
		inner, fault := innerCall(r.m)
		if fault != nil {
			s.refuse(r.number, fault)
			return r, true
		}
		r.m, r.readOnly = inner, name == readTool
	}
	return r, false
}

// innerCall returns the call that the arguments of read_tool or call_tool describe.
func innerCall(m *jsonrpc.Message) (*jsonrpc.Message, *jsonrpc.Error) {
	name, arguments := m.Param("arguments", "name"), m.Param("arguments", "arguments")
	_, isText := name.Text()
	given := arguments.Value
	if text, isText := arguments.Text(); isText { // some models write an object as text
		given = rawjson.FirstValue([]byte(text))
		if !json.Valid([]byte(text)) {
			given = nil
		}
	}
	switch {
	case name.Ambiguous || arguments.Ambiguous:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "params.arguments is ambiguous")
	case !isText:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.arguments.name must be a string: the name of a "+
			"tool that %s has found", findTools)
	case arguments.Value == nil || string(arguments.Value) == "null":
		given = json.RawMessage(`{}`)
	case len(given) == 0 || given[0] != '{':
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.arguments.arguments must be an object")
	}
	inner, err := jsonrpc.Parse(m.WithValue(m.Param("arguments"), rawjson.Compact(given)))
	if err == nil {
		inner, err = jsonrpc.Parse(inner.WithValue(inner.Param("name"), name.Value))
	}
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", err)
	}
	inner.Context, inner.Trace = m.Context, m.Trace
	return inner, nil
}

// mayRead returns the error for a call by read_tool of a tool that does not say of itself that it only reads.
func (s *session) mayRead(to destination) *jsonrpc.Error {
	for _, r := range []*result{s.newest(), s.told[merge.Tools]} { // the newest hints count
		if r == nil {
			continue
		}
		at := slices.IndexFunc(r.Lists[merge.Tools], func(e merge.Entry) bool {
			return e.Member == to.link.m.Name && e.Own == to.own
		})
		if at < 0 {
			continue
		}
		if mcp.HintsOf(r.Lists[merge.Tools][at].Raw).ReadOnly {
			return nil
		}
		break
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s takes tools alone that say that they only read: "+
		"call this one with %s", readTool, callTool)
}

// offering returns a function that reports whether the client may have a tool of the newest list. It needs no lock: the
// globs of a client are compared with thousands of names.
func (s *session) offering() func(r *result, final string) bool {
	isThere := make(map[string]bool) // the members of the session
	for _, l := range s.links {
		isThere[l.m.Name] = l.state != leaving && l.state != gone
	}
	return func(r *result, final string) bool {
		origin, ok := r.Named(merge.Tools, final)
		return ok && isThere[origin.Member] && s.isOffered(merge.Tools, final)
	}
}

// near is the part of an error about an unknown tool that names others; empty if there are none.
func (r *result) near(name string, offers func(r *result, final string) bool) string {
	isListed := func(final string) bool { return offers(r, final) }
	var names []string
	for _, tool := range r.search.index().Find(clip.Long(name), maxNear, isListed) {
		names = append(names, tool.Name)
	}
	if len(names) == 0 {
		return ": look for tools with " + findTools
	}
	return ": there are " + strings.Join(names, ", ") + ", and what " + findTools + " finds"
}

// found is a tool that answers a question, in short.
type found struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	ReadOnly    bool   `json:"readOnly"`
}

// findings is what find_tools answers.
type findings struct {
	Tools     []found           `json:"tools,omitempty"`
	Schemas   []json.RawMessage `json:"schemas,omitempty"`
	Unknown   []string          `json:"unknown,omitempty"`
	NotListed []string          `json:"serversNotYetKnown,omitempty"`
	Next      string            `json:"next"`
}

// find answers a call of find_tools, or has it wait as a list does.
func (s *session) find(r request) {
	s.want(merge.Tools)
	w := &waiter{request: r, purpose: toFind, kind: merge.Tools}
	if s.mustWait(w) {
		s.wait(w)
		return
	}
	s.whenWarm(r, func() { s.answerFind(r) })
}

// answerFind answers a call of find_tools. If no member is withheld from the call, the client then has been told the
// newest list.
func (s *session) answerFind(r request) {
	var asks struct {
		Query string
		Names texts
	}
	arguments := r.m.Param("arguments")
	err := json.Unmarshal(arguments.Value, &asks)
	switch {
	case arguments.Value == nil, err == nil && strings.TrimSpace(asks.Query) == "" && len(asks.Names) == 0:
		s.answer(r.number, textResult(`write what you want to do as "query", or names of tools as "names"`, true))
		return
	case arguments.Ambiguous, err != nil:
		s.answer(r.number, textResult(`"query" must be a text, and "names" a list of texts`, true))
		return
	case len(asks.Names) > maxSchemas:
		s.answer(r.number, textResult(fmt.Sprintf("ask for the schemas of %d tools at most", maxSchemas), true))
		return
	}
	now := s.newestFor(r)
	if now.search == nil { // the view has listed its tools again meanwhile
		s.refuse(r.number, unknown("tool")(findTools))
		return
	}
	if now == s.newest() {
		s.told[merge.Tools] = now
	}
	var f findings
	for _, l := range s.links {
		if l.lists[merge.Tools] == nil && l.state != leaving && l.state != gone && l.mayGet(r) {
			f.NotListed = append(f.NotListed, l.m.Name)
		}
	}
	receive, offers := s.receive, s.offering()
	s.later(func() { // an index may have thousands of tools to read
		isListed := func(final string) bool { return offers(now, final) }
		f.describe(now, asks.Names, isListed)
		if strings.TrimSpace(asks.Query) != "" {
			f.find(now, asks.Query, isListed)
		}
		id := jsonrpc.NumberID(r.number)
		receive(jsonrpc.NewResult(id, textResult(f.text(), false)), id, nil)
	})
}

// texts is a list of texts. A text alone is one, too, because some models write it.
type texts []string

// UnmarshalJSON reads the list.
func (t *texts) UnmarshalJSON(data []byte) error {
	if one, ok := rawjson.Text(data); ok {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// describe adds the schemas of the tools with these names.
func (f *findings) describe(r *result, names []string, isListed func(final string) bool) {
	for _, name := range names {
		if at := r.entryOf(name, isListed); at >= 0 {
			f.Schemas = append(f.Schemas, schemaOf(r.Lists[merge.Tools][at].Raw))
		} else {
			f.Unknown = append(f.Unknown, clip.Long(name))
		}
	}
}

// entryOf returns the place of a tool in the list, by its final name, or by that of its server if only one has it. It
// returns -1 for a tool that the client may not have.
func (r *result) entryOf(name string, isListed func(final string) bool) int {
	list := r.Lists[merge.Tools]
	byFinal := func(final string) int {
		return slices.IndexFunc(list, func(e merge.Entry) bool { return e.Name == final && isListed(final) })
	}
	if _, isFinal := r.Named(merge.Tools, name); isFinal {
		return byFinal(name)
	}
	bare := slices.DeleteFunc(slices.Clone(r.Bare(merge.Tools, name)), func(final string) bool {
		return byFinal(final) < 0
	})
	if len(bare) != 1 {
		return -1
	}
	return byFinal(bare[0])
}

// find adds the tools that answer a question.
func (f *findings) find(r *result, question string, isListed func(name string) bool) {
	f.Tools = []found{}
	for _, tool := range r.search.index().Find(question, maxFound, isListed) {
		text, _ := rawjson.MemberText(tool.Raw, "description")
		f.Tools = append(f.Tools, found{tool.Name, firstSentence(text), mcp.HintsOf(tool.Raw).ReadOnly})
	}
}

// text returns what the model reads.
func (f *findings) text() string {
	switch {
	case len(f.Tools) == 0 && len(f.Schemas) == 0:
		f.Next = "Nothing is found. Try other words: a verb, such as list or create, and what it is about."
	case len(f.Schemas) == 0:
		f.Next = "Ask for what a tool takes: find_tools with names. Then call it with " + readTool +
			" if it is readOnly, else with " + callTool + "."
	default:
		f.Next = "Call a tool with " + callTool + ", or with " + readTool + " if its readOnlyHint is true."
	}
	text, _ := json.Marshal(f) // all of it has a JSON form
	return string(text)
}

// schemaOf returns what a model needs of a tool: all but icons and what is for programs.
func schemaOf(tool json.RawMessage) json.RawMessage {
	for _, member := range []string{"icons", "_meta", "execution"} {
		tool = rawjson.RemoveMember(tool, member)
	}
	return tool
}

// firstSentence returns the first sentence of a description, on one line.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for i := range len(text) - 1 {
		if strings.IndexByte(".!?", text[i]) >= 0 && text[i+1] == ' ' && !strings.HasSuffix(text[:i], "e.g") &&
			!strings.HasSuffix(text[:i], "i.e") {
			text = text[:i+1]
			break
		}
	}
	if runes := []rune(text); len(runes) > maxSentence {
		text = string(runes[:maxSentence-1]) + "…"
	}
	return text
}

// textResult returns the result of a call of a tool that says a text.
func textResult(text string, isError bool) json.RawMessage {
	result := map[string]any{"content": []map[string]string{{"type": "text", "text": text}}}
	if isError {
		result["isError"] = true
	}
	encoded, _ := json.Marshal(result) // all of it has a JSON form
	return encoded
}

// listOfSearch returns the page with the tools of toolsOfSearch.
func listOfSearch(r *result, isOffered func(final string) bool) json.RawMessage {
	tools := toolsOfSearch(r.Result, isOffered)
	page, _ := json.Marshal(map[string]any{merge.Tools.Member(): tools}) // all of it has a JSON form
	return page
}

// toolsOfSearch returns the view's own tools. They say what stands behind them: the tools of the list that are offered;
// nil: all.
func toolsOfSearch(r *merge.Result, isOffered func(final string) bool) []any {
	var servers []string // in their order
	counts := make(map[string]int)
	total, asTasks := 0, false
	for _, e := range r.Lists[merge.Tools] {
		if isOffered != nil && !isOffered(e.Name) {
			continue
		}
		if counts[e.Member] == 0 {
			servers = append(servers, e.Member)
		}
		counts[e.Member]++
		total++
		support, _ := rawjson.MemberText(e.Raw, "execution", "taskSupport")
		asTasks = asTasks || support == "optional" || support == "required"
	}
	for i, server := range servers {
		servers[i] = fmt.Sprintf("%s (%d)", server, counts[server])
	}
	behind := "No tools are known now"
	if total > 0 {
		behind = fmt.Sprintf("There are %d: of %s", total, strings.Join(servers, ", "))
	}
	return ownTools(behind, asTasks)
}

// ownTools returns the view's own tools. behind says what can be found, and asTasks that some of it can be called as a
// task.
func ownTools(behind string, asTasks bool) []any {
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	call := map[string]any{
		"type": "object",
		"properties": map[string]any{
			"name": text("The name of the tool, as " + findTools + " gives it."),
			"arguments": map[string]any{"type": "object", "additionalProperties": true,
				"description": "The arguments of that tool, as its inputSchema says. Without any: {}."},
		},
		"required": []string{"name"},
	}
	tool := func(name, title, description string, schema, annotations map[string]any, asTasks bool) map[string]any {
		t := map[string]any{
			"name": name, "title": title, "description": description, "inputSchema": schema, "annotations": annotations,
		}
		if asTasks {
			t["execution"] = map[string]string{"taskSupport": "optional"}
		}
		return t
	}
	return []any{
		tool(findTools, "Find tools", "Finds the tools for a task. The tools of this server are not listed. "+behind+
			". Always look here before you say that something cannot be done. query gives the ten best tools, each "+
			"with one sentence; names gives the whole schemas of tools, which say what arguments they take.",
			map[string]any{
				"type": "object",
				"properties": map[string]any{
					"query": text(`What is to be done, in English, such as "list the open issues of a repository".`),
					"names": map[string]any{"type": "array", "items": map[string]any{"type": "string"},
						"maxItems": maxSchemas, "description": "Names of tools whose schemas are wanted."},
				},
			}, map[string]any{"readOnlyHint": true, "openWorldHint": false}, false),
		tool(readTool, "Read with a tool", "Calls a tool that only reads (readOnly in "+findTools+"), and returns its "+
			"result. Any other tool is refused.", call, map[string]any{"readOnlyHint": true}, asTasks),
		tool(callTool, "Call a tool", "Calls any tool that "+findTools+" finds, and returns its result. It may change "+
			"or delete something.", call, map[string]any{"readOnlyHint": false, "destructiveHint": true}, asTasks),
	}
}
