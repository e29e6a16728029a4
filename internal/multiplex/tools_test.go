package multiplex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Each client of a view lists the same thousands of tools: they are read for the first one, and again if a byte
// differs.
func TestListThatAnotherSessionHadIsNotReadAgain(t *testing.T) {
	const tools = 1000
	var page strings.Builder
	page.WriteString(`{"tools":[`)
	for n := range tools {
		fmt.Fprintf(&page, `{"name":"t%d","annotations":{"readOnlyHint":true}},`, n)
	}
	page.WriteString(`{"name":"last"}]}`)
	list := json.RawMessage(page.String())
	call, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t7"}}`))
	if err != nil {
		t.Fatal(err)
	}

	known, first := &Tools{}, &Tools{}
	size := first.noteWhole(list, known)
	known.takeList(first)
	var second *Tools
	got := testing.AllocsPerRun(3, func() {
		second = &Tools{}
		ssetest.Want(t, "size", *second.noteWhole(list, known), *size)
	})
	if got > tools/10 {
		t.Errorf("got %v allocations for a list of %d tools: it was read again", got, tools)
	}
	listed, _ := second.Listed()
	ssetest.Want(t, "tools", len(listed), tools+1)
	ssetest.Want(t, "safe", second.Safe(call), true)

	changed := bytes.Replace(list, []byte(`{"name":"t7","annotations":{"readOnlyHint":true}`), []byte(`{"name":"t7"`), 1)
	second.noteWhole(changed, known)
	ssetest.Want(t, "safe after a change", second.Safe(call), false)
	ssetest.Want(t, "safe for the first session", first.Safe(call), true)
}
