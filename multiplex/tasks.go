package multiplex

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	methodTasksGet    = "tasks/get"
	methodTasksResult = "tasks/result"
	methodTasksCancel = "tasks/cancel"
	methodTasksList   = "tasks/list"
	methodTasksUpdate = "tasks/update" // of the tasks extension of MCP 2026-07-28
	methodTaskStatus  = "notifications/tasks/status"
	methodTask        = "notifications/tasks" // of the extension

	// relatedTask names the task that a message belongs to, in its _meta.
	relatedTask = "io.modelcontextprotocol/related-task"

	// maxTasks bounds the tasks of a session that are known.
	maxTasks = 4096
)

// tasks are those that the server has made of requests (MCP 2025-11-25), by their
// ids, which are unique at the server. Guarded by Session.mu.
type tasks struct {
	byID   map[string]*task
	order  []*task // in which they came; those that are gone among them
	tokens map[int64]*task
}

type task struct {
	id    string
	owner string // the principal; empty: the port alone
	port  *Port  // that made it; nil when it has left
	over  bool   // its status will not change any more
	// wire is the progress token that the server knows, 0 for none, and token
	// the client's.
	wire  int64
	token json.RawMessage
}

// ownedBy reports whether a port may know of the task.
func (k *task) ownedBy(t *Port) bool {
	return k != nil && (k.port == t || k.owner != "" && k.owner == t.principal)
}

// add notes a task; beyond the bound the oldest one that is over goes, or the
// oldest.
func (c *tasks) add(k *task) {
	if c.byID == nil {
		c.byID = make(map[string]*task)
		c.tokens = make(map[int64]*task)
	}
	c.remove(c.byID[k.id])
	if len(c.byID) >= maxTasks {
		c.remove(c.oldest())
	}
	if len(c.order) >= 2*maxTasks {
		c.oldest() // takes those that are gone out of the order
	}
	c.byID[k.id] = k
	c.order = append(c.order, k)
	if k.wire != 0 {
		c.tokens[k.wire] = k
	}
}

func (c *tasks) oldest() *task {
	here := c.order[:0]
	var oldest, over *task
	for _, k := range c.order {
		if c.byID[k.id] != k {
			continue
		}
		here = append(here, k)
		if oldest == nil {
			oldest = k
		}
		if over == nil && k.over {
			over = k
		}
	}
	clear(c.order[len(here):])
	c.order = here
	if over != nil {
		return over
	}
	return oldest
}

func (c *tasks) remove(k *task) {
	if k != nil {
		delete(c.byID, k.id)
		delete(c.tokens, k.wire)
	}
}

// status notes what the server says of a task. When it is over its progress token
// is, too.
func (c *tasks) status(id, status string) {
	k := c.byID[id]
	if k == nil {
		return
	}
	switch status {
	case "completed", "failed", "cancelled":
		k.over = true
		delete(c.tokens, k.wire)
	}
}

// leave forgets what only a port could ask for.
func (c *tasks) leave(t *Port) {
	for _, k := range c.byID {
		if k.port != t {
			continue
		}
		k.port = nil
		delete(c.tokens, k.wire)
		if k.owner == "" {
			c.remove(k)
		}
	}
}

// learnTask notes the task that a response says was made of its request.
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
	k := &task{id: id, owner: p.port.principal, port: p.port}
	if p.token != nil {
		k.wire, k.token = p.id, p.token
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.port.left && s.err == nil {
		s.tasks.add(k)
	}
}

// learnStatus notes the status that the answer to a request about a task has.
func (s *Session) learnStatus(p *pending, result json.RawMessage) {
	status := "completed" // what tasks/result gives is there when the task is over
	if p.method != methodTasksResult {
		raw, _ := jsonrpc.Member(result, "status")
		status, _ = jsonrpc.Text(raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks.status(p.task, status)
}

// ownTasks returns the answer to a client's tasks/list with its own tasks alone.
func (s *Session) ownTasks(p *pending, m *jsonrpc.Message) []byte {
	list, _ := jsonrpc.Member(m.Result(), "tasks")
	own := jsonrpc.Filter(list, func(element json.RawMessage) bool {
		raw, _ := jsonrpc.Member(element, "taskId")
		id, _ := jsonrpc.Text(raw)
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.tasks.byID[id].ownedBy(p.port)
	})
	return jsonrpc.ReplaceMember(m.WithID(p.client), own, "result", "tasks")
}

// taskStatus passes the news of a task to its owner.
func (s *Session) taskStatus(m *jsonrpc.Message) {
	at, _ := m.Param("taskId")
	id, _ := jsonrpc.Text(m.At(at))
	at, _ = m.Param("status")
	status, _ := jsonrpc.Text(m.At(at))
	s.mu.Lock()
	s.tasks.status(id, status)
	ports := s.ports
	if s.opts.Shared {
		ports = s.taskPortsLocked(id)
	}
	s.mu.Unlock()
	if len(ports) == 0 {
		s.drop(metrics.DroppedUnattributed, "it is not known whose task this is", m)
		return
	}
	deliver(ports, m.Method, m.Raw())
}

// taskPortsLocked returns the port that has made a task; when that has left, those
// of its principal.
func (s *Session) taskPortsLocked(id string) []*Port {
	k := s.tasks.byID[id]
	if k == nil {
		return nil
	}
	if k.port != nil {
		return []*Port{k.port}
	}
	var ports []*Port
	for _, t := range s.ports {
		if k.ownedBy(t) {
			ports = append(ports, t)
		}
	}
	return ports
}
