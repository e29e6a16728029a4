package background

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// leavesWithItsAnswer is a client that ends its input once it has its answer, before the program's Write returns.
type leavesWithItsAnswer struct{ of *Introduction }

func (w leavesWithItsAnswer) Write(p []byte) (int, error) {
	_, _ = w.of.Read(make([]byte, 1))
	return len(p), nil
}

// A client that leaves as soon as it has its answer has had it.
func TestAClientThatLeavesWithItsAnswerIsAnswered(t *testing.T) {
	r, w := io.Pipe()
	client := NewIntroduction(r, nil)
	client.out = leavesWithItsAnswer{client}
	go func() { // ends with the pipe
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`+"\n")
		_ = w.Close()
	}()
	_, err := client.Read(make([]byte, 1<<10))
	ssetest.Must(t, err)
	_, err = client.Write([]byte(`{"result":{"protocolVersion":"x"}}`))
	ssetest.Must(t, err)
	ssetest.Want(t, "answered", client.isAnswered(), true)
}

// The logs of the processes that sse-server stdio leaves behind are no way to another file of the user.
func TestLogsAreNotWrittenThroughLinks(t *testing.T) {
	env := clitest.State(t)
	s := windowOf(t, env, "--", "x")
	for name, start := range map[string]func() error{
		"learn.log": func() error {
			_, err := startLearner(nil, json.RawMessage(`{}`), s.dir)
			return err
		},
		"daemon-8080.log": func() error {
			_, err := s.start(t.Context())
			return err
		},
	} {
		victim := filepath.Join(t.TempDir(), "victim")
		ssetest.Must(t, os.WriteFile(victim, []byte("text"), 0o600))
		ssetest.Must(t, os.Symlink(victim, filepath.Join(s.dir, name)))
		ssetest.WantText(t, name, fmt.Sprint(start()), filepath.Join(s.dir, name)+" is not a regular file: delete it")
		data, err := os.ReadFile(victim)
		ssetest.Must(t, err)
		ssetest.Want(t, name+": the file that the link leads to", string(data), "text")
	}
	ssetest.Must(t, os.Chmod(s.dir, 0o777))
	_, err := startLearner(nil, json.RawMessage(`{}`), s.dir)
	ssetest.WantText(t, "learn.log in a folder of all", fmt.Sprint(err), "can write to "+s.dir)
}
