package environ

import (
	"os"
	"strconv"
	"strings"
)

// ParentsVariable is the variable in which the child process of a gateway finds the gateways above it, the outermost
// first. Each is the id of its process and the path at which it serves the child, as in 4711/mcp,4720/docs/mcp. An
// sse-server that starts itself would do so without an end; by the variable it sees how many there are already. It
// belongs to no server: it is ambient.
const ParentsVariable = "MCP_SSE_PARENTS"

// Parent returns how the variable has the gateway with a process id that serves a child at a path.
func Parent(pid int, path string) string {
	return strconv.Itoa(pid) + strings.ReplaceAll(strings.TrimSuffix(path, "/"), ",", "%2C")
}

// Parents returns the gateways above this one, the outermost first, as Parent has them.
func Parents(lookupEnv func(string) (string, bool)) []string {
	value, _ := lookupEnv(ParentsVariable)
	return strings.FieldsFunc(value, func(c rune) bool { return c == ',' })
}

// ForChild returns the variable, as "key=value", that a child process of this one gets which it serves at a path.
func ForChild(path string) string {
	above := append(Parents(os.LookupEnv), Parent(os.Getpid(), path))
	return ParentsVariable + "=" + strings.Join(above, ",")
}
