package background

import (
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
)

// Run runs a program of the system to its end, and returns what it has written.
func Run(name string, args ...string) (output string, err error) {
	written, err := exec.Command(name, args...).CombinedOutput()
	return string(written), err
}

// RunAsOfFile runs this program with other arguments to its end, in the environment and the folder that the shared
// sse-server of the file of c has. It returns what the program has written to stdout, and its exit code.
func RunAsOfFile(c *config.Config, stderr io.Writer, args ...string) (output []byte, code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.Command(self, args...)
	cmd.Env, cmd.Dir, cmd.Stderr = inheritable(c, os.Environ()), c.DirOfFile(), stderr
	output, err = cmd.Output()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		return output, exited.ExitCode(), nil
	}
	return output, 0, err
}
