package environ

import (
	"os"
	"strconv"
	"strings"
)

// ParentsVariable is the variable in which the child process of a gateway finds the gateways above it: the ids of
// their processes, the outermost first, as in 4711,4720. An sse-server that starts itself would do so without an
// end; by the variable it sees how many there are already. It belongs to no server: it is ambient.
const ParentsVariable = "MCP_SSE_PARENTS"

// Parents returns the ids of the processes of the gateways above this one, the outermost first.
func Parents(lookupEnv func(string) (string, bool)) []string {
	value, _ := lookupEnv(ParentsVariable)
	return strings.FieldsFunc(value, func(c rune) bool { return c == ',' })
}

// ForChild returns the variable, as "key=value", that a child process of this one gets.
func ForChild() string {
	above := append(Parents(os.LookupEnv), strconv.Itoa(os.Getpid()))
	return ParentsVariable + "=" + strings.Join(above, ",")
}
