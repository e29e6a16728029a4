//go:build agents

package agents

import (
	"path/filepath"
	"testing"
)

// view is one URL for a quick server, one that boots 8 s, and one that ends at once.
type view struct {
	name   string
	config string // the file of the gateway
	file   string // the journal of the slow server
}

// slowTool is the only tool of the slow server.
const slowTool = "late_echo"

// newView writes the configuration of a view. quick is the command of the first server.
func newView(t *testing.T, quick []string) *view {
	t.Helper()
	slow, journal := serverCommand(t, "--boot", "8s", "--tool", slowTool)
	v := &view{name: "team", config: filepath.Join(t.TempDir(), "servers.yaml"), file: journal}
	write(t, v.config, "servers:\n  quick: {command: "+quote(t, quick)+"}\n  slow: {command: "+quote(t, slow)+"}\n"+
		"  dead: {command: [\"false\"]}\nviews:\n  "+v.name+": {servers: {quick: {}, slow: {}, dead: {}}}\n")
	return v
}

// journal returns what the slow server saw.
func (v *view) journal() string { return contentOf(v.file) }
