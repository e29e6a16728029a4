package rawjson_test

import (
	"encoding/json"
	"fmt"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

func ExampleReplaceMember() {
	params := json.RawMessage(`{"name":"echo","_meta":{"progressToken":"mine"}}`)
	fmt.Printf("%s\n", rawjson.ReplaceMember(params, json.RawMessage("17"), "_meta", "progressToken"))
	// Output:
	// {"name":"echo","_meta":{"progressToken":17}}
}
