package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A server below sse-server stdio dies of SIGPIPE as anywhere else: its pipelines end by it.
func TestStdioServerTakesSIGPIPE(t *testing.T) {
	const script = `alive=$(sh -c 'kill -PIPE $$; echo it ignores SIGPIPE')
		read -r _; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"'"$alive"'","version":"1"}}}'
		cat >/dev/null`
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	m := &Main{
		Args: []string{"stdio", "--", "sh", "-c", script}, Stdin: in, Stdout: out, Stderr: io.Discard,
		LookupEnv: clitest.Environment(nil), Notify: func(...os.Signal) <-chan os.Signal { return make(chan os.Signal) },
	}
	code := make(chan int, 1)
	go func() { code <- m.Run() }()
	t.Cleanup(func() {
		stdin.Close()
		if got := <-code; got != exit.OK {
			t.Errorf("ended with %d", got)
		}
	})
	if _, err := io.WriteString(stdin, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.Contains(line, `"name":""`) {
		t.Errorf("got %s, %v", line, err)
	}
}

// A configuration that cannot be used is told to the client, in the words of stderr without its example, as the answer
// to each request: a client that starts programs shows no more than an end otherwise.
func TestClientOfStdioHearsWhatIsWrong(t *testing.T) {
	file := clitest.WriteFile(t, "servers.yaml", "servers:\n  files:\n    comand: [x]\n")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a key":          {[]string{"stdio", "-c", file}, file + `:3:5: unknown key "comand" in servers.files (did you mean command?)`},
		"--connect":      {[]string{"stdio", "--connect", "-c", file}, file + ":3:5: "},
		"no file":        {[]string{"stdio", "-c", file + ".none"}, "--config: there is no file " + file + ".none"},
		"another order":  {[]string{"-c", file, "stdio"}, file + ":3:5: "},
		"a flag":         {[]string{"stdio", "--conect", "-c", file}, "unknown flag --conect, did you mean"},
		"no command":     {[]string{"stdio", "--"}, "nothing comes after --"},
		"the audit log":  {[]string{"stdio", "-c", clitest.WriteFile(t, "gw.yaml", "audit-log: /\n")}, "audit-log: "},
		"the name":       {[]string{"stdio", "--connect", "nowhere", "--", "x"}, "--connect: "},
		"of a learner":   {[]string{"stdio", "--learn", "-c", file}, ""},
		"of no client":   {[]string{"-c", file}, ""},
		"of another one": {[]string{"check", "-c", file}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			const requests = `{"jsonrpc":"2.0","id":0,"method":"initialize"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"
			p := launchMain(t, &Main{Args: test.args, LookupEnv: clitest.Environment(clitest.State(t)), Stdin: strings.NewReader(requests)})
			p.wantExit(exit.Config)
			answers := strings.SplitAfter(p.out.String(), "\n")
			if test.want == "" {
				ssetest.Want(t, "what a client gets", p.out.String(), "")
				return
			}
			ssetest.Want(t, "the number of answers", len(answers)-1, 2)
			for i, answer := range answers[:2] {
				var got struct {
					ID    int
					Error struct {
						Code    int
						Message string
					}
				}
				ssetest.Must(t, json.Unmarshal([]byte(answer), &got))
				ssetest.Want(t, "the id", got.ID, i)
				ssetest.Want(t, "the code", got.Error.Code, jsonrpc.CodeInternalError)
				ssetest.WantText(t, "the message", got.Error.Message, test.want)
				if example := strings.TrimPrefix(p.log.String(), "sse-server: "+got.Error.Message); example != "\n" && !strings.HasPrefix(example, ", as in: ") {
					t.Errorf("stderr: got %q, and the client %q", p.log.String(), got.Error.Message)
				}
			}
		})
	}
}

// A client hears each fault, but no example: that may have the rest of the command line, also words of several lines.
func TestFaultsWithoutExamples(t *testing.T) {
	script, other := errors.New("a.js: a script comes after node, as in: node a.js\n--key hunter2"), errors.New("b: unknown key")
	for _, test := range []struct {
		err  error
		want string
	}{
		{other, "b: unknown key"},
		{script, "a.js: a script comes after node"},
		{errors.Join(script, other), "a.js: a script comes after node\nb: unknown key"},
		{errors.Join(other, errors.Join(script, script)), "b: unknown key\na.js: a script comes after node\na.js: a script comes after node"},
		{fmt.Errorf("servers: %w", errors.Join(other, script)), "servers: b: unknown key\na.js: a script comes after node"},
		{fmt.Errorf("%w, %w", other, script), "b: unknown key, a.js: a script comes after node"},
	} {
		ssetest.Want(t, test.err.Error(), withoutExamples(test.err), test.want)
	}
}

// A client that is refused and never closes stdin does not keep the program from its end by a signal.
func TestRefusedClientDoesNotKeepTheProgram(t *testing.T) {
	in, stdin := io.Pipe()
	defer stdin.Close()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	m := &Main{
		Args: []string{"stdio", "-c", clitest.WriteFile(t, "gw.yaml", "audit-log: /\n")}, Stdin: in, Stdout: io.Discard, Stderr: io.Discard,
		LookupEnv: clitest.Environment(nil), Notify: func(...os.Signal) <-chan os.Signal { return signals },
	}
	ssetest.Want(t, "the exit code", m.Run(), exit.Config)
}
