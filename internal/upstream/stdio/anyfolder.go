package stdio

import (
	"os"
	"path/filepath"

	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The answers of a server in one folder may be told in another one only if no folder had a say in them: a folder
// that somebody has cloned must not choose the answers of servers elsewhere. Whether a command looks at its folder
// cannot be read off the command. So the answers that are told in any folder are those in an empty one:
//
//	what                      | there it is
//	--------------------------|----------------------------------------------------------------------------
//	the folder                | empty, and below the gateway's own, which nobody else can write to
//	program and arguments     | the same; if a path in them is relative, it is another server: see elsewhere
//	given variables           | the same
//	other variables           | the same, and part of the place: the server runs on its user's account
//	PATH                      | without folders of one session, and part of the place
//	those of a folder         | not set, nor names of this machine, nor what terminals, logins and editors say

// InEmptyFolder returns c as it runs in a folder that is empty: nothing of the folder or of the terminal in which
// this process runs takes part in what it says there.
func (c Command) InEmptyFolder(dir string) jsonrpc.Dialer { return c.alone(dir) }

func (c Command) alone(dir string) Command {
	all := c.variables()
	env := append(all.given, all.around...)
	if all.path != "" {
		env = append(env, "PATH="+environ.LastingPath(all.path))
	}
	if c.Env == nil {
		for _, variable := range os.Environ() {
			name, _ := environ.Split(variable)
			c.Inherited = append(c.Inherited, name)
		}
	}
	c.Dir, c.Env = dir, env
	return c
}

// elsewhere is a folder that does not exist.
var elsewhere = filepath.Join(string(filepath.Separator), "an empty folder")

// placeOfNone returns the place in which the command runs with InEmptyFolder; empty if it would be another server than
// this one there, as with a relative path of a program, or if it serves each of its clients something else.
func (c Command) placeOfNone(server string) string {
	if c.PrincipalEnv != "" {
		return ""
	}
	there := c.alone(elsewhere).identity()
	if there.Server != server {
		return ""
	}
	return there.Place
}
