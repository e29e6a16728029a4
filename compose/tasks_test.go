package compose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Three members make tasks with one id. Each is asked for its own, and the client can tell them apart.
func TestTasksOfThreeMembers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fakes := map[string]*fake{"a": newFake("t"), "b": newFake("t"), "c": newFake("t")}
		for _, f := range fakes {
			f.says = `{"capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}`
		}
		c := open(t, newView(t, members("a", fakes["a"], "b", fakes["b"], "c", fakes["c"])))
		ssetest.WantText(t, "initialize", strings.Join(c.take(), ""), `"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`)
		for i, name := range []string{"a", "b", "c"} {
			conn, number, related := fakes[name].conn(), 10*(i+1), `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"%s1"}}`
			own, told := fmt.Sprintf(related, ""), fmt.Sprintf(related, name+":")
			c.request(int64(number), "tools/call", `{"name":"`+name+`__t","task":{}}`)
			c.request(int64(number+1), "tasks/get", `{"taskId":"`+name+`:1"}`)
			c.request(int64(number+2), "tasks/result", `{"taskId":"`+name+`:1"}`)
			fakes[name].wantGot(t, name, `{"method":"notifications/initialized"}`, fmt.Sprintf(`{"id":%d,"method":"tools/call","params":{"name":"t","task":{}}}`, number),
				fmt.Sprintf(`{"id":%d,"method":"tasks/get","params":{"taskId":"1"}}`, number+1), fmt.Sprintf(`{"id":%d,"method":"tasks/result","params":{"taskId":"1"}}`, number+2))
			conn.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"task":{"taskId":"1","status":"working"}}}`, number),
				`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"1","status":"input_required"}}`,
				fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"taskId":"1", "status":"input_required"}}`, number+1))
			conn.sayFor(jsonrpc.NumberID(int64(number+2)), `{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{`+own+`}}`)
			got := c.take()
			ssetest.WantLines(t, got[:3], []string{fmt.Sprintf(`{"id":%d,"result":{"task":{"taskId":"%s:1","status":"working"}}}`, number, name),
				`{"method":"notifications/tasks/status","params":{"taskId":"` + name + `:1","status":"input_required"}}`,
				fmt.Sprintf(`{"id":%d,"result":{"taskId":"%s:1", "status":"input_required"}}`, number+1, name)})
			ssetest.WantText(t, "question", got[3], fmt.Sprintf("for %d: ", number+2), `"method":"roots/list","params":{`+told+`}}`)
			id, _, _ := strings.Cut(got[3][strings.Index(got[3], "view-"):], `"`)
			c.send(`{"jsonrpc":"2.0","id":"` + id + `","result":{"roots":[],` + told + `}}`)
			fakes[name].wantGot(t, "reply", `{"id":1,"result":{"roots":[],`+own+`}}`)
			conn.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\"taskId\":\"1\""}],%s}}`, number+2, own),
				`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"1"}}`)
			ssetest.WantText(t, "result", strings.Join(c.take(), "\n"), fmt.Sprintf(`{"id":%d,"result":{"content":[{"type":"text","text":"\"taskId\":\"1\""}],%s}}`, number+2, told),
				`"method":"tasks/get","params":{"taskId":"1"}}`) // of a task that the client has
		}
	})
	inBubble(t, func(t *testing.T) { // of one member ids stay as they are
		f := newFake("t")
		f.says = `{"capabilities":{"tools":{},"tasks":{"list":{}}}}`
		c := open(t, newView(t, members("a", f)))
		ssetest.WantText(t, "initialize", strings.Join(c.take(), ""), `"tasks":{"list":{}}`)
		c.request(2, "tools/call", `{"name":"t"}`)
		f.conn().say(`{"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"1"}}}`)
		c.want("task", `{"id":2,"result":{"task":{"taskId":"1"}}}`)
	})
	_, err := compose.New(members("a:b", newFake()), compose.Options{})
	ssetest.WantText(t, "name", err, "its name has a colon")
}
