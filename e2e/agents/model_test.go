//go:build agents

package agents

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// model is a scripted language model. It asks for the tools of its steps, one after the other,
// and then says that it is done. Conversations without tools, such as those for a title, get
// an answer and count for nothing.
type model struct {
	*httptest.Server
	t     *testing.T
	steps []step

	mu       sync.Mutex
	asked    []int                   // guarded by mu; for each result of the conversation the step it belongs to, or searching
	begun    map[int]bool            // guarded by mu; steps whose before has run
	missed   map[int]bool            // guarded by mu; steps whose tool was not offered
	offered  map[string]offer        // guarded by mu; how tools were offered, by their own names
	results  map[int]json.RawMessage // guarded by mu; what came back for each step
	bodies   []string                // guarded by mu; the requests of the conversation
	searches int                     // guarded by mu; since the last step
	log      strings.Builder         // guarded by mu
}

// step is one call of a tool.
type step struct {
	tool      string
	arguments string // a JSON object; empty: {}
	// before, if not nil, runs when the agent asks what to do, before it is told.
	before func()
}

// searching is what asked has for a result of a search for tools, which belongs to no step.
const searching = -1

// turn is a request of an agent to its model, whatever the API.
type turn struct {
	tools   []offer
	results []json.RawMessage // of tools, in the order of the conversation
	stream  bool
	json    bool // the answer must be a JSON object
}

// offer is a tool that an agent offers to its model.
type offer struct{ name, namespace, description string }

// action is what the model wants: a call of a tool, or an answer.
type action struct {
	tool      offer
	id        string
	arguments string
	text      string // if it is no call
}

func (a action) calls() bool { return a.tool.name != "" }

// api is one of the ways in which agents talk to models.
type api interface {
	// read returns what a request says.
	read(path string, body []byte) (turn, error)
	// write answers it.
	write(w http.ResponseWriter, t turn, a action)
}

// apis are told by the ends of their paths.
var apis = []struct {
	path string
	api
}{
	{"/messages", messages{}},
	{"/chat/completions", completions{}},
	{"/responses", responses{}},
	{"enerateContent", gemini{}},
}

// startModel starts a model that ends with the test. Unless it is nil, an earlier one ends now, and the model
// is at its address.
func startModel(t *testing.T, earlier *model, steps ...step) *model {
	t.Helper()
	m := &model{
		t: t, steps: steps, begun: map[int]bool{}, missed: map[int]bool{},
		offered: map[string]offer{}, results: map[int]json.RawMessage{},
	}
	m.Server = httptest.NewUnstartedServer(m)
	if earlier != nil {
		earlier.Close()
		at, err := net.Listen("tcp", earlier.Listener.Addr().String())
		ssetest.Must(t, err)
		ssetest.Must(t, m.Listener.Close())
		m.Listener = at
	}
	m.Start()
	t.Cleanup(m.Close)
	return m
}

// bodies, if set, is a directory that gets the requests to the models, for whoever finds out
// why an agent does what it does.
var bodies = flag.String("bodies", "", "write the requests to the models into this directory")

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent has gone
	}
	if *bodies != "" {
		file, err := os.CreateTemp(*bodies, strings.ReplaceAll(m.t.Name(), "/", "-")+"-*.json")
		if err == nil {
			_, _ = file.Write(body) // whoever misses it will notice
			_ = file.Close()
		}
	}
	for _, a := range apis {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, a.path) {
			continue
		}
		asks, err := a.read(r.URL.RequestURI(), body)
		if err != nil {
			m.t.Errorf("a request to the model at %s: %v\n%.2000s", r.URL, err, body)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		does := m.next(asks, string(body))
		m.note("%s %s: %d tools, %d results, wants %s%s", r.Method, r.URL.Path, len(asks.tools), len(asks.results), does.tool.name, does.text)
		a.write(w, asks, does)
		return
	}
	m.note("%s %s", r.Method, r.URL.Path)
	// Lists of models, and counts of tokens, in all dialects at once.
	writeJSON(w, map[string]any{
		"object": "list", "data": []any{map[string]any{"id": modelName, "object": "model"}}, "models": []any{},
		"input_tokens": 10, "totalTokens": 10,
	})
}

// next returns what the model wants now.
func (m *model) next(t turn, body string) action {
	if t.json {
		return action{text: routing}
	}
	if len(t.tools) == 0 {
		return action{text: "A title"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = append(m.bodies, body)
	for _, tool := range t.tools {
		if own := marked.FindStringSubmatch(tool.description); own != nil {
			m.offered[own[1]] = tool
		}
		if strings.Contains(tool.description, loginMark) {
			m.offered[loginTool] = tool
		}
	}
	for _, raw := range t.results {
		for _, found := range declared.FindAllStringSubmatch(string(raw), -1) {
			own := cmp.Or(found[2], loginTool)
			if _, ok := m.offered[own]; !ok {
				m.offered[own] = offer{name: found[1]}
			}
		}
	}
	now, n := 0, min(len(t.results), len(m.asked))
	for i := range n {
		if at := m.asked[i]; at != searching {
			m.results[at] = t.results[i]
			now = max(now, at+1)
		}
	}
	m.asked = m.asked[:n]
	for ; now < len(m.steps); now++ {
		if m.missed[now] {
			continue
		}
		if does := m.take(now, t); does.calls() {
			does.id = fmt.Sprintf("call_%d", n)
			return does
		}
		m.missed[now] = true
	}
	return action{text: "The script is done."}
}

// take returns the call of a step, or a search for its tool, or nothing if there is neither.
// m.mu is held, but not while before runs.
func (m *model) take(at int, t turn) action {
	s := m.steps[at]
	if !m.begun[at] {
		m.begun[at], m.searches = true, 0
		if s.before != nil {
			m.mu.Unlock()
			s.before()
			m.mu.Lock()
		}
	}
	arguments := s.arguments
	if arguments == "" {
		arguments = "{}"
	}
	named := func(name string) int {
		return slices.IndexFunc(t.tools, func(o offer) bool { return strings.EqualFold(strings.ReplaceAll(o.name, "_", ""), name) })
	}
	known, once := m.offered[s.tool]
	i := slices.IndexFunc(t.tools, func(o offer) bool {
		return strings.Contains(o.description, mark(s.tool)) || o.name == known.name && o.namespace == known.namespace
	})
	if i >= 0 {
		m.asked = append(m.asked, at)
		return action{tool: t.tools[i], arguments: arguments}
	}
	// Some agents hide tools behind a search, and some of these call them through another tool.
	if i := named("toolcall"); i >= 0 && once {
		m.asked = append(m.asked, at)
		return action{tool: t.tools[i], arguments: fmt.Sprintf(`{"name":%q,"arguments":%s}`, known.name, arguments)}
	}
	if i := named("toolsearch"); i >= 0 && m.searches < 2 {
		m.searches++
		m.asked = append(m.asked, searching)
		return action{tool: t.tools[i], arguments: fmt.Sprintf(`{"query":%q,"max_results":20}`, s.tool)}
	}
	if once { // a model remembers it, and learns that it is gone
		m.asked = append(m.asked, at)
		return action{tool: known, arguments: arguments}
	}
	return action{}
}

// marked finds the name of a tool in its description, and declared that and the name under which
// it is offered in what a search for tools has returned, however often its quotes are escaped.
var (
	marked   = regexp.MustCompile(`Known to its server as \[([^]]+)\]`)
	declared = regexp.MustCompile(`\\*"name\\*": *\\*"([^"\\]+)\\*", *\\*"description\\*": *\\*"(?:Known to its server as \[([^]]+)\]|` + loginMark + `)`)
)

// result returns what came back to the model for a step, and false if nothing did.
func (m *model) result(at int) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	raw, ok := m.results[at]
	return string(raw), ok
}

// saw reports whether the text was in any request of the conversation.
func (m *model) saw(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.bodies, func(body string) bool { return strings.Contains(body, text) })
}

func (m *model) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fmt.Fprintf(&m.log, format+"\n", args...)
}

// journal returns one line for each request.
func (m *model) journal() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.String()
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the agent may have gone
}

// event is one event of a stream, with its type if the API names it.
type event struct {
	name string
	data any
}

func writeEvents(w http.ResponseWriter, events ...event) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, ok := e.data.(string)
		if !ok {
			raw, err := json.Marshal(e.data)
			if err != nil {
				panic(err) // maps of strings and numbers
			}
			data = string(raw)
		}
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}
