package handshake

import (
	"encoding/json"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// What a client has put into a message decides the contact of its session.
func TestContactByMessage(t *testing.T) {
	for _, tc := range []struct {
		message string
		want    contact
	}{
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, hasMessages},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, hasMessages},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, hasMessages},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/templates/list","params":{}}`, hasMessages},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":7}}}`, hasMessages},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"given"}}`, hasMessages},

		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"own"}}`, heardClient},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"words":"own"}}`, heardClient},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"words":"own"}}}`, heardClient},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"own","cursor":"given"}}`, heardClient},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","words":"own"}`, heardClient},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"cursor":"given"}}`, heardClient},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a://1"}}`, heardClient},
		{`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`, heardClient},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, heardClient},

		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, mayHaveChanged},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a://1"}}`, mayHaveChanged},
		{`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, mayHaveChanged},
		{`{"jsonrpc":"2.0","id":1,"method":"x/unknown"}`, mayHaveChanged},
	} {
		m, err := jsonrpc.Parse([]byte(tc.message))
		ssetest.Must(t, err)
		looked := make(chan struct{})
		heard := func(before contact, c *contacts) contact {
			c.notePage(json.RawMessage(`{"nextCursor":"given"}`))
			c.raiseTo(before)
			c.Hears(m)
			return c.reached()
		}
		ssetest.Want(t, "contact by "+tc.message, heard(noContact, &contacts{looked: looked}), tc.want)
		for _, before := range []contact{hasMessages, heardClient, mayHaveChanged} { // it only grows
			ssetest.Want(t, "contact by "+tc.message, heard(before, &contacts{looked: looked}), max(before, tc.want))
		}
		close(looked) // what comes now cannot change the look
		ssetest.Want(t, "contact after the look by "+tc.message, heard(noContact, &contacts{looked: looked}), hasMessages)
	}
	state := &contacts{looked: make(chan struct{})}
	state.HearsState()
	ssetest.Want(t, "contact by the state of a client", state.reached(), heardClient)
	none := &contacts{}
	call, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`))
	ssetest.Must(t, err)
	none.Hears(call)
	ssetest.Want(t, "contact of a session that nobody looks at", none.reached(), hasMessages)
}
