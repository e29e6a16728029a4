package compose

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// In a view of several, the client has the tasks of a member under ids that begin with its name and a colon. So the id
// alone says which member has the task, and a session keeps nothing of it. The name of a member has no colon.

const taskColon = ":"

// relatedTask is the member of _meta that names the task with which a message has to do.
const relatedTask = "io.modelcontextprotocol/related-task"

// taskPlaces are where messages of a member have ids of its tasks. Its requests about tasks of the client have those of
// the client.
var taskPlaces = [][]string{
	{"result", "task", "taskId"}, {"result", "taskId"}, {"result", "_meta", relatedTask, "taskId"},
	{"params", "_meta", relatedTask, "taskId"},
}

// statusPlace is where a member tells how a task is.
var statusPlace = []string{"params", "taskId"}

// withTasks returns a message of a member with the ids that the client has of its tasks.
func (m *member) withTasks(msg []byte, method string) []byte {
	if !bytes.Contains(msg, []byte(`"taskId"`)) {
		return msg
	}
	places := taskPlaces
	if method == mcp.MethodTaskStatus {
		places = append([][]string{statusPlace}, places...)
	}
	for _, place := range places {
		if id, ok := rawjson.MemberText(msg, place...); ok {
			msg = rawjson.ReplaceMember(msg, rawjson.Quote(m.Name+taskColon+id), place...)
		}
	}
	return msg
}

// withOwnTask returns the client's reply to a question with the member's own id of the task that it names.
func (m *member) withOwnTask(reply []byte) []byte {
	place := []string{"result", "_meta", relatedTask, "taskId"}
	id, _ := rawjson.MemberText(reply, place...)
	if own, ok := strings.CutPrefix(id, m.Name+taskColon); ok {
		return rawjson.ReplaceMember(reply, rawjson.Quote(own), place...)
	}
	return reply
}

// task finds the member of a task.
func task(s *session, _ request, id string) (destination, *jsonrpc.Error, bool) {
	if l := s.only(); l != nil {
		return destination{link: l, own: id}, nil, false
	}
	member, own, found := strings.Cut(id, taskColon)
	if l := s.linkTo(member); found && l != nil {
		return destination{link: l, own: own}, nil, false
	}
	return destination{}, unknown("task")(id), false
}

// tasksOf returns the capability of tasks, as the client gets it: a view of several lists no tasks.
func tasksOf(several bool, joined map[string]json.RawMessage) map[string]json.RawMessage {
	if several {
		delete(joined, "list")
	}
	return joined
}
