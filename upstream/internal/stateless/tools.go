package stateless

import (
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/mirror"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// toolPage is what one answer to tools/list says.
type toolPage struct {
	// result is the answer without the tools that break the rules.
	result json.RawMessage
	// headers has the mirrored arguments of each other tool; nil for none.
	headers map[string][]mirror.Param
	// dropped says which rule a tool breaks.
	dropped map[string]error
}

// readTools reads the result of a tools/list. It leaves a result of another form
// unchanged.
func readTools(result json.RawMessage) toolPage {
	page := toolPage{result: result, headers: make(map[string][]mirror.Param), dropped: make(map[string]error)}
	list, _ := jsonrpc.Member(result, "tools")
	kept := jsonrpc.Filter(list, func(tool json.RawMessage) bool {
		member, _ := jsonrpc.Member(tool, "name")
		name, _ := jsonrpc.Text(member)
		schema, _ := jsonrpc.Member(tool, "inputSchema")
		headers, err := mirror.Params(schema)
		if err != nil {
			page.dropped[name] = err
			return false
		}
		page.headers[name] = headers
		return true
	})
	if len(page.dropped) > 0 {
		page.result = jsonrpc.ReplaceMember(result, kept, "tools")
	}
	return page
}
