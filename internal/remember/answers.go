package remember

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Answers is what a server said to a client. It must not be changed once
// others know it. The results of the server are text here, because JSON in JSON would lose its spaces.
type Answers struct {
	// Initialize is the result of initialize, as the server sent it.
	Initialize string `json:"initialize"`
	// Stateless says that the server was one of MCP 2026-07-28.
	Stateless bool `json:"stateless,omitempty"`
	// Pages are the results of the lists, as the server sent them, by the method and then by the
	// cursor of the request as JSON; empty for the first page. A list that is not here was too long,
	// or the server has none.
	Pages map[string]map[string]string `json:"pages"`
	// Missing are the methods of lists that the server does not know, although it declares the kind.
	Missing []string `json:"missing,omitempty"`
	// Learned is when the server said it.
	Learned time.Time `json:"learned"`
	// Partial says that it is what the server said to others: only its result of initialize and its tools, and
	// nothing of what it lacks. See Server.Nearest.
	Partial bool `json:"-"`
}

// lists are the methods whose answers are kept, by the member of the initialize result's
// capabilities that says that a server has them.
var lists = map[string][]string{
	"tools":     {mcp.MethodListTools},
	"prompts":   {mcp.MethodListPrompts},
	"resources": {mcp.MethodListResources, mcp.MethodListTemplates},
}

// Methods returns the methods of the lists of one kind: "tools", "prompts" or "resources".
func Methods(kind string) []string { return lists[kind] }

// Kinds are the kinds of lists.
func Kinds() []string { return []string{"tools", "prompts", "resources"} }

// Answer returns the result that answers a request for a page of a list. It reports false if the
// server has to answer it: nothing is known, or the request has params that are neither a cursor nor
// _meta.
func (a *Answers) Answer(m *jsonrpc.Message) (result json.RawMessage, ok bool) {
	pages := a.Pages[m.Method]
	if pages == nil {
		return nil, false
	}
	var params map[string]json.RawMessage
	if raw := m.Params(); raw != nil && json.Unmarshal(raw, &params) != nil {
		return nil, false
	}
	cursor := params["cursor"]
	delete(params, "cursor")
	delete(params, "_meta")
	if len(params) > 0 || m.Param("cursor").Ambiguous {
		return nil, false
	}
	page, ok := pages[pageOf(cursor)]
	return json.RawMessage(page), ok
}

// Lacks reports whether a method is that of a list which the server does not have: it does not declare
// the kind, or does not know the method.
func (a *Answers) Lacks(method string) bool {
	if a.Partial {
		return false
	}
	for kind, methods := range lists {
		if slices.Contains(methods, method) {
			_, declared := rawjson.Member(json.RawMessage(a.Initialize), "capabilities", kind)
			return !declared || slices.Contains(a.Missing, method)
		}
	}
	return false
}

// pageOf returns the name of the page that a cursor asks for.
func pageOf(cursor json.RawMessage) string {
	if page := string(rawjson.Compact(cursor)); page != "null" {
		return page
	}
	return ""
}

// Has reports whether the answers say what lists of a kind the server has, or that it has none.
func (a *Answers) Has(kind string) bool { return !a.Partial || kind == "tools" }

// SameLists reports whether both have the same lists of a kind, byte for byte.
func (a *Answers) SameLists(other *Answers, kind string) bool {
	for _, method := range lists[kind] {
		if !maps.Equal(a.Pages[method], other.Pages[method]) {
			return false
		}
	}
	return true
}

// Same reports whether both have the same answers to everything, whenever they were learned.
func (a *Answers) Same(other *Answers) bool {
	differs := func(kind string) bool { return !a.SameLists(other, kind) }
	return a.Initialize == other.Initialize && a.Stateless == other.Stateless &&
		slices.Equal(a.Missing, other.Missing) && !slices.ContainsFunc(Kinds(), differs)
}

// With returns the answers with those lists of earlier ones that they lack, if the server has said the same to
// initialize; the answers alone if earlier is nil.
func (a Answers) With(earlier *Answers) *Answers {
	if earlier == nil || earlier.Initialize != a.Initialize {
		return &a
	}
	merged := maps.Clone(earlier.Pages)
	maps.Copy(merged, a.Pages)
	missing := slices.Clone(a.Missing)
	for _, method := range missing {
		delete(merged, method)
	}
	for _, method := range earlier.Missing {
		if merged[method] == nil && !slices.Contains(missing, method) {
			missing = append(missing, method)
		}
	}
	slices.Sort(missing)
	a.Pages, a.Missing = merged, missing
	return &a
}

// Items returns what is in the pages of a list, in their order: the elements of a member of each page, such
// as "tools". It reports false if the list is not there.
func (a *Answers) Items(method, member string) (items []json.RawMessage, ok bool) {
	results := a.Pages[method]
	for page, seen := "", 0; seen < len(results); seen++ {
		result := json.RawMessage(results[page])
		list, _ := rawjson.Member(result, member)
		rawjson.Each(list, func(one json.RawMessage) { items = append(items, one) })
		page = string(pages.Next(result))
	}
	return items, results != nil
}

// size returns about how many bytes the answers take.
func (a *Answers) size() int {
	size := len(a.Initialize)
	for _, pages := range a.Pages {
		for page, result := range pages {
			size += len(page) + len(result)
		}
	}
	return size
}

// valid reports whether answers that were read from a file can be used.
func (a *Answers) valid() bool {
	_, ok := rawjson.MemberText(json.RawMessage(a.Initialize), "protocolVersion")
	ok = ok && isJSON(a.Initialize)
	for _, pages := range a.Pages {
		for _, page := range pages {
			ok = ok && isJSON(page)
		}
	}
	return ok
}

// isJSON reports whether a text may be sent as it is.
func isJSON(text string) bool { return json.Valid([]byte(text)) && utf8.ValidString(text) }

const (
	// maxPages bounds the pages of one list, and maxListBytes its bytes. A longer list is not kept.
	maxPages     = 100
	maxListBytes = 2 << 20
)

// Read reads all pages of a list, and returns nil if the list is too long or does not end. ask sends
// a request for a page to the server, and returns the result.
func Read(ask func(params json.RawMessage) (result json.RawMessage, err error)) (map[string]string, error) {
	results := make(map[string]string)
	size := 0
	for page, err := range pages.Read(maxPages, ask) {
		if _, endless := errors.AsType[pages.Endless](err); endless {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		results[page.Cursor] = string(page.Result)
		if size += len(page.Result); size > maxListBytes && !page.Last {
			return nil, nil
		}
	}
	return results, nil
}
