package multiplex

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

const (
	// relatedTask is the member of a message's _meta that names its task.
	relatedTask = "io.modelcontextprotocol/related-task"

	// codeElicitationRequired is the error of a request that needs the user to
	// visit URLs first (MCP 2025-11-25).
	codeElicitationRequired = "-32042"

	// maxURI bounds the URI of a subscription, in bytes.
	maxURI = 8 << 10
)

// shared holds what the clients of a session want of the server, and which tasks and
// elicitations are whose. Without Options.Shared, it holds only the tasks that make
// progress. Guarded by Session.mu.
type shared struct {
	levels        sharing.Levels[*Caller]
	subscriptions sharing.Subscriptions[*Caller]
	elicitations  sharing.Elicitations[*Caller]
	tasks         sharing.Tasks[*Caller]
}

// judge decides whether the server must see a request that sets a log level or a
// subscription. If not, it records what the client wants.
func (s *shared) judge(p *pending) verdict {
	switch p.method {
	case mcp.MethodSetLevel:
		return s.judgeLevel(p)
	case mcp.MethodUnsubscribe:
		if !s.subscriptions.Unsubscribe(p.uri, p.caller) {
			return confirm
		}
		return forward
	}
	switch done, err := s.subscriptions.Subscribe(p.uri, p.caller); {
	case err != nil:
		return forbid
	case done:
		return confirm
	}
	return forward
}

// judgeLevel is judge for logging/setLevel. The server gets the most verbose level
// that a client wants.
func (s *shared) judgeLevel(p *pending) verdict {
	level, needed := s.levels.Needed(p.caller, p.level)
	if !needed {
		s.levels.Set(p.caller, p.level)
		return confirm
	}
	p.serverLevel = level
	if level != p.level {
		_, at := levelOf(p.request)
		m, err := jsonrpc.Parse(p.request.WithValue(at, []byte(`"`+level.String()+`"`)))
		if err != nil { // it was valid before
			return confirm
		}
		p.request = m
	}
	return forward
}

// levelOf returns the level in a message's params and its place. The level is 0 if
// there is none or it is ambiguous.
func levelOf(m *jsonrpc.Message) (sharing.Level, jsonrpc.Place) {
	at, certain := m.Param("level")
	text, _ := jsonrpc.Text(m.At(at))
	if !certain {
		return 0, at
	}
	return sharing.ParseLevel(text), at
}

// settleSerial records the server's answer to p, which was just removed, if p was in
// a serial queue. If the server refused a subscription, it removes and returns the
// waiting requests for the same one: they get the same error.
func (t *table) settleSerial(p *pending, failed bool) (same []*pending) {
	switch {
	case p.serial == nil:
	case p.method == mcp.MethodSetLevel && !failed:
		t.shared.levels.Told(p.serverLevel)
		t.shared.levels.Set(p.caller, p.level)
	case p.method == mcp.MethodSubscribe && !failed:
		t.shared.subscriptions.Add(p.uri, p.caller)
	case p.method == mcp.MethodSubscribe:
		for _, w := range slices.Clone(p.serial.waiting) {
			if w.method != mcp.MethodSubscribe {
				break
			}
			t.remove(w)
			same = append(same, w)
		}
	}
	return same
}

// forget removes all that belongs to a client that leaves, and adds the requests
// that tell the server. abandoned are the client's own requests. The server may have
// accepted a subscription among them, so it gets an unsubscribe.
func (t *table) forget(c *Caller, abandoned []*pending) {
	t.shared.tasks.Leave(c)
	t.shared.elicitations.Leave(c)
	uris := t.shared.subscriptions.Leave(c)
	for _, p := range abandoned {
		if p.sent && p.method == mcp.MethodSubscribe && p.serial != nil {
			uris = append(uris, p.uri)
		}
	}
	for _, uri := range uris {
		quoted, _ := json.Marshal(uri) // a string always has a JSON form
		t.addOwn(mcp.MethodUnsubscribe, `{"uri":`+string(quoted)+`}`, uri)
	}
	if level, needed := t.shared.levels.Leave(c); needed {
		t.addOwn(mcp.MethodSetLevel, `{"level":"`+level.String()+`"}`, "")
	}
}

// learn records what a response says that matters later, and returns its bytes for
// the client.
func (s *Session) learn(p *pending, m *jsonrpc.Message) []byte {
	result := m.Result()
	switch {
	case p.caller == nil:
	case result == nil:
		s.learnElicitations(p.caller, m.Error())
	case p.method == mcp.MethodListTools:
		s.opts.Repeatable.learn(!p.more, result)
	case p.method == mcp.MethodListTasks && s.opts.Shared:
		return s.filterTasks(p, m)
	case p.task != "":
		s.learnStatus(p, result)
	default:
		s.learnTask(p, result)
	}
	return m.WithID(p.answerID())
}

// learnTask records the task that the server made of a request, as its response
// says.
func (s *Session) learnTask(p *pending, result json.RawMessage) {
	if !s.opts.Shared && p.token == nil || !bytes.Contains(result, []byte(`"taskId"`)) {
		return
	}
	raw, found := jsonrpc.Member(result, "task", "taskId")
	if kind, _ := jsonrpc.Member(result, "resultType"); !found && string(kind) == `"task"` {
		raw, _ = jsonrpc.Member(result, "taskId")
	}
	id, ok := jsonrpc.Text(raw)
	if !ok || len(id) > jsonrpc.MaxIDBytes {
		return
	}
	task := &sharing.Task[*Caller]{ID: id, Principal: p.caller.principal, Client: p.caller}
	if p.token != nil {
		task.Wire, task.Token = p.id, p.token
	}
	s.withLock(func(t *table) {
		if !p.caller.left && s.err == nil {
			t.shared.tasks.Add(task)
		}
	})
}

// learnStatus records the status in the answer to a request about a task.
func (s *Session) learnStatus(p *pending, result json.RawMessage) {
	status := "completed" // the server answers tasks/result when the task is over
	if p.method != mcp.MethodTaskResult {
		raw, _ := jsonrpc.Member(result, "status")
		status, _ = jsonrpc.Text(raw)
	}
	s.withLock(func(t *table) { t.shared.tasks.SetStatus(p.task, status) })
}

// filterTasks returns the answer to a client's tasks/list with only its own tasks.
func (s *Session) filterTasks(p *pending, m *jsonrpc.Message) []byte {
	list, _ := jsonrpc.Member(m.Result(), "tasks")
	own := jsonrpc.Filter(list, func(element json.RawMessage) (owned bool) {
		raw, _ := jsonrpc.Member(element, "taskId")
		id, _ := jsonrpc.Text(raw)
		s.withLock(func(t *table) { owned = t.shared.tasks.Find(id).OwnedBy(p.caller, p.caller.principal) })
		return owned
	})
	return jsonrpc.ReplaceMember(m.WithID(p.answerID()), own, "result", "tasks")
}

// learnElicitations records the elicitations that an error says a request needs
// first.
func (s *Session) learnElicitations(c *Caller, fault json.RawMessage) {
	if !s.opts.Shared || !bytes.Contains(fault, []byte(codeElicitationRequired)) {
		return
	}
	list, _ := jsonrpc.Member(fault, "data", "elicitations")
	jsonrpc.Each(list, func(element json.RawMessage) {
		id, _ := jsonrpc.Member(element, "elicitationId")
		s.learnElicitation(c, id)
	})
}

// learnElicitation records that an elicitation is for a client.
func (s *Session) learnElicitation(c *Caller, rawID json.RawMessage) {
	id, ok := jsonrpc.Text(rawID)
	if !ok || !s.opts.Shared || len(id) > jsonrpc.MaxIDBytes {
		return
	}
	s.withLock(func(t *table) {
		if !c.left {
			t.shared.elicitations.Add(id, c)
		}
	})
}
