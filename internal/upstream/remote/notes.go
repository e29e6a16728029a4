package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// loginMemory is Credentials of a person that keep what the server says to the login. login.Credentials explains its
// methods.
type loginMemory interface {
	Mark() string
	Recall(place string, client remember.Client, log *slog.Logger) *remember.Answers
	Learn(mark, place string, client remember.Client, said remember.Answers, log *slog.Logger)
}

const (
	// maxNotedPages bounds the pages of one list that is noted, and maxNotedBytes its bytes.
	maxNotedPages = 100
	maxNotedBytes = 2 << 20
	// maxAsked bounds the requests whose answers are awaited: some never come.
	maxAsked = 64
)

// notes listens to what a server says to the client of a session with a login: the result of initialize and whole
// lists, for later clients while nobody is logged in. It asks for nothing itself. It stops at the first message that
// may change the lists, such as a call: what a client's own messages have changed is told to nobody else. It is safe
// for concurrent use; a nil *notes hears nothing.
type notes struct {
	memory     loginMemory
	place, who string
	log        *slog.Logger
	isOff      atomic.Bool

	mu      sync.Mutex // guards what follows
	mark    string     // the login at initialize
	client  remember.Client
	version string                  // that the client has asked for
	asked   map[jsonrpc.ID]question // requests without an answer
	lists   map[string]*list        // the lists that are being read, by method
	said    *remember.Answers       // not changed; nil: the server has not answered initialize
	work    sync.WaitGroup          // learns
}

// question is a request for initialize or a page of a list.
type question struct{ method, cursor string }

// list is what has come of a list.
type list struct {
	pages map[string]string
	next  string // the cursor of the page that is missing
	bytes int
}

// newNotes returns the notes of a session; nil if nothing may be kept: no client has caused the session, the server
// gets headers of the client, and so may say something else to each, or the client may not use the login.
func (u URL) newNotes(ctx context.Context) *notes {
	memory, ok := u.Credentials.(loginMemory)
	a := asker.FromContext(ctx)
	if !ok || a == nil || len(a.Header) > 0 || u.isFromProxy(ctx) {
		return nil
	}
	log := u.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &notes{memory: memory, place: u.placeOfMemory(), who: remember.Principal(a.Principal), log: log,
		asked: make(map[jsonrpc.ID]question), lists: make(map[string]*list)}
}

// placeOfMemory returns what the answers of the server depend on beside the login. It is kept as a hash.
func (u URL) placeOfMemory() string {
	var lines []string
	for name, values := range u.Header {
		lines = append(lines, fmt.Sprintf("%s: %q", strings.ToLower(name), values))
	}
	slices.Sort(lines)
	return strings.Join(append(lines, u.Address), "\n")
}

// recall returns what a session in the place of one with the server answers to a client that initializes with params;
// nil if nothing is known.
func (n *notes) recall(params json.RawMessage) *remember.Answers {
	if n == nil {
		return nil
	}
	client, plain := remember.ClientOf(withoutTrace(params), n.who)
	if !plain { // it has something that others have not sent
		return nil
	}
	return n.memory.Recall(n.place, client, n.log)
}

// stop ends the notes: the session is not with the server, or its lists may be the client's own from now on.
func (n *notes) stop() {
	if n != nil {
		n.isOff.Store(true)
	}
}

// close stops the notes, and waits until what they have is kept.
func (n *notes) close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.isOff.Store(true)
	n.mu.Unlock()
	n.work.Wait()
}

// harmless are the methods of a client that change no list.
var harmless = []string{
	mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodInitialized, mcp.MethodCancelled, mcp.MethodProgress,
}

// sent notes a message of the client.
func (n *notes) sent(msg []byte) {
	if n == nil || n.isOff.Load() {
		return
	}
	m, err := jsonrpc.Parse(msg)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil || m.Kind != jsonrpc.Request && m.Kind != jsonrpc.Notification:
		n.stop()
	case slices.Contains(harmless, m.Method):
	case m.Method == mcp.MethodInitialize && m.Kind == jsonrpc.Request && n.mark == "":
		client, plain := remember.ClientOf(withoutTrace(m.Params()), n.who)
		n.client, n.mark = client, n.memory.Mark()
		n.version, _ = m.Param("protocolVersion").Text()
		if !plain || n.mark == "" {
			n.stop()
		}
		n.asked[m.ID] = question{method: m.Method}
	case m.Kind == jsonrpc.Request && isList(m.Method) && n.isPlain(m) && len(n.asked) < maxAsked:
		n.asked[m.ID] = question{m.Method, string(rawjson.Compact(m.Param("cursor").Value))}
	default:
		n.stop()
		n.asked, n.lists, n.said = nil, nil, nil // nobody reads them any more, and they may have MiBs
	}
}

// isList reports whether a method is that of a list of a kind that is kept.
func isList(method string) bool {
	return slices.ContainsFunc(remember.Kinds(), func(kind string) bool {
		return slices.Contains(remember.Methods(kind), method)
	})
}

// withoutTrace returns the params of a request without the trace context (SEP-414), which a gateway with traces adds to
// each one: no server says anything else for it.
func withoutTrace(params json.RawMessage) json.RawMessage {
	if _, has := rawjson.Member(params, "_meta"); !has || !rawjson.HasMembersOnce(params) {
		return params
	}
	return stateless.CutMeta(params, "traceparent", "tracestate")
}

// isPlain reports whether a request for a list has nothing by which a client could choose what the server says, beside
// what the client has declared in initialize. In MCP 2026-07-28 each request declares that again.
func (n *notes) isPlain(m *jsonrpc.Message) bool {
	var all struct {
		Cursor json.RawMessage            `json:"cursor"`
		Meta   map[string]json.RawMessage `json:"_meta"`
	}
	if m.Params() == nil {
		return true
	}
	in := json.NewDecoder(bytes.NewReader(withoutTrace(m.Params())))
	in.DisallowUnknownFields()
	if in.Decode(&all) != nil || m.Param("cursor").Ambiguous {
		return false
	}
	if all.Meta[mcp.MetaVersion] != nil {
		params, _ := json.Marshal(map[string]any{ // never fails
			"protocolVersion": n.version, "capabilities": all.Meta[mcp.MetaCapabilities],
			"clientInfo": all.Meta[mcp.MetaClientInfo],
		})
		if client, plain := remember.ClientOf(params, n.who); !plain || !client.Equal(n.client) {
			return false
		}
	}
	for _, name := range []string{"progressToken", mcp.MetaVersion, mcp.MetaCapabilities, mcp.MetaClientInfo} {
		delete(all.Meta, name)
	}
	return len(all.Meta) == 0
}

// received notes a message of the server.
func (n *notes) received(msg []byte) {
	if n == nil || n.isOff.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.asked) == 0 || n.isOff.Load() {
		return
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Response {
		return
	}
	q, ok := n.asked[m.ID]
	delete(n.asked, m.ID)
	switch result := m.Result(); {
	case !ok:
	case result == nil && q.method == mcp.MethodInitialize:
		n.stop()
	case result == nil:
		delete(n.lists, q.method)
	case q.method == mcp.MethodInitialize:
		n.said = &remember.Answers{Initialize: string(result), Pages: map[string]map[string]string{}}
	default:
		n.add(q, result)
	}
}

// add notes a page of a list, and keeps the list with its last page.
func (n *notes) add(q question, result json.RawMessage) {
	if q.cursor == "null" || q.cursor == "" { // another reading begins
		n.lists[q.method] = &list{pages: make(map[string]string)}
		q.cursor = ""
	}
	l := n.lists[q.method]
	if l == nil || q.cursor != l.next || n.said == nil {
		return
	}
	for _, name := range []string{"resultType", "ttlMs", "cacheScope"} { // of MCP 2026-07-28: it is no result of now
		result = rawjson.RemoveMember(result, name)
	}
	l.pages[q.cursor] = string(result)
	l.bytes += len(result)
	l.next = string(rawjson.Compact(pages.Next(result)))
	_, isEndless := l.pages[l.next]
	switch {
	case l.next == "":
		delete(n.lists, q.method)
		n.keep(q.method, l.pages)
	case isEndless, len(l.pages) >= maxNotedPages, l.bytes > maxNotedBytes:
		delete(n.lists, q.method)
	}
}

// keep keeps a whole list, with the others of this session. Nothing is kept before the tools: a session in the place of
// one with the server needs them.
func (n *notes) keep(method string, of map[string]string) {
	said := *n.said
	said.Pages, said.Learned = maps.Clone(said.Pages), time.Now()
	said.Pages[method] = of
	n.said = &said
	if said.Pages[mcp.MethodListTools] != nil {
		mark, client := n.mark, n.client
		n.work.Go(func() { n.memory.Learn(mark, n.place, client, said, n.log) }) // ends with the disk
	}
}
