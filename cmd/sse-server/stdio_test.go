package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
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
