//go:build deploy

package deploytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// client is one of the TypeScript SDK, which takes the steps of e2e/clients/run.mjs.
type client struct {
	t     *testing.T
	p     *process
	in    io.Writer
	steps int
}

// connect starts a client, and returns once it has connected. transport is sse or
// streamable, flags are variables and further flags.
func connect(t *testing.T, url, transport string, env []string, flags ...string) *client {
	t.Helper()
	dir := filepath.Join(root, "e2e/clients")
	cmd := exec.Command(filepath.Join("node_modules", "node", "bin", "node"),
		append([]string{"run.mjs", "--client", "sdk1", "--url", url, "--transport", transport, "--timeout", fmt.Sprint(patience.Milliseconds())}, flags...)...)
	cmd.Dir, cmd.Env = dir, append(cmd.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, p: startCmd(t, cmd), in: in}
	c.step("connect")
	return c
}

// step takes a step, which must succeed, and returns the text of its answer.
func (c *client) step(line string) string {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatalf("step %s: %v\n%s", line, err, c.p.out.Tail())
	}
	c.steps++
	var reply struct {
		OK   bool
		Text string
	}
	c.p.until("answer "+line, func() error {
		var replies []string
		for printed := range strings.Lines(c.p.out.String()) {
			if strings.HasPrefix(printed, "{") && strings.HasSuffix(printed, "\n") {
				replies = append(replies, printed)
			}
		}
		if len(replies) < c.steps {
			return errors.New("it has not")
		}
		return json.Unmarshal([]byte(replies[c.steps-1]), &reply)
	})
	if !reply.OK {
		c.t.Fatalf("step %s failed:\n%s", line, c.p.out.Tail())
	}
	return reply.Text
}

// echo calls the tool of the demo server and checks its answer.
func (c *client) echo(message string) {
	c.t.Helper()
	if got := c.step(fmt.Sprintf(`call echo {"message":%q}`, message)); got != message {
		c.t.Errorf("echo of %q: got %q", message, got)
	}
}
