package mcpgo

import "testing"

// mcp-go's key for headers is found. If this fails after an update, look how mcp-go passes
// the header of a request now.
func TestHeaderKeyIsFound(t *testing.T) {
	if headerKey() == nil {
		t.Error("mcp-go asks for no key that gives a request its header")
	}
}
