package multiplex

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex/sharing"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// relatedTask is the member of a message's _meta that names its task.
	relatedTask = "io.modelcontextprotocol/related-task"

	// maxURI bounds the URI of a subscription, in bytes.
	maxURI = 8 << 10
)

// shared holds what the clients of a session want of the server, and which tasks are
// whose. Without Options.Shared, it holds only the tasks that make progress. Guarded by
// Session.mu.
type shared struct {
	levels        sharing.Levels[*Caller]
	subscriptions sharing.Subscriptions[*Caller]
	tasks         sharing.Tasks[*Caller]
}

// decide decides whether the server must see a request that sets a log level or a
// subscription. If not, it records what the client wants.
func (s *shared) decide(e *entry) decision {
	switch e.method {
	case mcp.MethodSetLevel:
		return s.decideLevel(e)
	case mcp.MethodUnsubscribe:
		if !s.subscriptions.Unsubscribe(e.uri, e.caller) {
			return confirm
		}
		return forward
	}
	switch done, tooMany := s.subscriptions.Subscribe(e.uri, e.caller); {
	case tooMany:
		return forbid
	case done:
		return confirm
	}
	return forward
}

// decideLevel is decide for logging/setLevel. The server gets the most verbose level
// that a client wants.
func (s *shared) decideLevel(e *entry) decision {
	level, needed := s.levels.Needed(e.caller, e.level)
	if !needed {
		s.levels.Set(e.caller, e.level)
		return confirm
	}
	e.serverLevel = level
	if level != e.level {
		_, at := levelOf(e.message)
		m, err := jsonrpc.Parse(e.message.WithValue(at, []byte(`"`+level.String()+`"`)))
		if err != nil { // it was valid before
			return confirm
		}
		e.message = m
	}
	return forward
}

// levelOf returns the level in a message's params and its place. The level is 0 if
// there is none or it is ambiguous.
func levelOf(m *jsonrpc.Message) (sharing.Level, jsonrpc.Place) {
	at := m.Param("level")
	text, _ := at.Text()
	if at.Ambiguous {
		return 0, at
	}
	return sharing.ParseLevel(text), at
}

// settleSetting records the server's answer to a request that sets something, if e is one.
func (s *shared) settleSetting(e *entry, failed bool) {
	switch {
	case e.key == "" || failed:
	case e.method == mcp.MethodSetLevel:
		s.levels.Taken(e.serverLevel)
		s.levels.Set(e.caller, e.level)
	case e.method == mcp.MethodSubscribe && e.caller != nil:
		s.subscriptions.Add(e.uri, e.caller)
	}
}

// forgetCaller removes all that belongs to a client that leaves, and adds the requests
// that tell the server.
func (t *table) forgetCaller(c *Caller) {
	t.shared.tasks.Leave(c)
	for _, uri := range t.shared.subscriptions.Leave(c) {
		t.addUnsubscribe(uri)
	}
	if level, needed := t.shared.levels.Leave(c); needed {
		t.addOwn(mcp.MethodSetLevel, `{"level":"`+level.String()+`"}`, "")
	}
}

// forAsker returns a response as the one that asked gets it: under the id of its own request, and with only its own
// tasks.
func (s *Session) forAsker(e *entry, m *jsonrpc.Message) []byte {
	if s.listsTasks(e) && m.Result() != nil {
		return s.filterTasks(e, m)
	}
	return m.WithID(e.answerID())
}

// listsTasks reports whether the answer to a request has tasks of several clients.
func (s *Session) listsTasks(e *entry) bool {
	return s.opts.Shared && e.caller != nil && e.method == mcp.MethodListTasks
}

// noteResponse notes what a response says that matters later.
func (s *Session) noteResponse(e *entry, m *jsonrpc.Message) {
	result := m.Result()
	switch {
	case e.caller == nil || result == nil || s.listsTasks(e):
	case e.method == mcp.MethodListTools:
		list := s.noteTools(e, result)
		if list != nil && s.opts.OnTools != nil {
			s.opts.OnTools(list)
		}
	case e.task != "":
		status := "completed" // the server answers tasks/result when the task is over
		if e.method != mcp.MethodTaskResult {
			status, _ = rawjson.MemberText(result, "status")
		}
		s.withLock(func(t *table) { t.shared.tasks.SetStatus(e.task, status) })
	default:
		s.noteTask(e, result)
	}
}

// noteTools notes a page of the list of tools. With the last page it returns the size of the list, before that nil.
func (s *Session) noteTools(e *entry, result json.RawMessage) *ToolList {
	known := s.opts.Tools
	if s.tools == known {
		return known.notePage(!e.more, result)
	}
	var list *ToolList
	if e.more {
		list = s.tools.notePage(false, result)
	} else {
		list = s.tools.noteWhole(result, known)
	}
	if list != nil {
		known.takeList(s.tools)
	}
	return list
}

// noteTask notes the task that the server made of a request, as its response
// says.
func (s *Session) noteTask(e *entry, result json.RawMessage) {
	if !s.opts.Shared && e.token == nil || !bytes.Contains(result, []byte(`"taskId"`)) {
		return
	}
	raw, found := rawjson.Member(result, "task", "taskId")
	if kind, _ := rawjson.Member(result, "resultType"); !found && string(kind) == `"task"` {
		raw, _ = rawjson.Member(result, "taskId")
	}
	id, ok := rawjson.Text(raw)
	if !ok || len(id) > jsonrpc.MaxIDBytes {
		return
	}
	task := &sharing.Task[*Caller]{ID: id, Principal: e.caller.principal, Client: e.caller}
	if e.token != nil {
		task.Wire, task.Token = e.id, e.token
	}
	s.withLock(func(t *table) {
		if !e.caller.left && s.err == nil {
			t.shared.tasks.Add(task)
		}
	})
}

// filterTasks returns the answer to a client's tasks/list with only its own tasks.
func (s *Session) filterTasks(e *entry, m *jsonrpc.Message) []byte {
	list, _ := rawjson.Member(m.Result(), "tasks")
	own := rawjson.Filter(list, func(element json.RawMessage) (owned bool) {
		id, _ := rawjson.MemberText(element, "taskId")
		s.withLock(func(t *table) { owned = t.shared.tasks.Find(id).OwnedBy(e.caller, e.caller.principal) })
		return owned
	})
	return rawjson.ReplaceMember(m.WithID(e.answerID()), own, "result", "tasks")
}
