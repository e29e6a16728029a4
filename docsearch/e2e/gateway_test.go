package e2e

import (
	"bufio"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gateway starts sse-server before docsearch mcp and returns the URL of its stream.
func (w *world) gateway(flags ...string) string {
	w.Helper()
	args := slices.Concat([]string{"--addr", "127.0.0.1:0"}, flags, []string{"--", binary(w.TB, "docsearch")}, w.serve())
	cmd := exec.Command(binary(w.TB, "sse-server"), args...)
	cmd.Env = w.command().Env
	cmd.Stderr = &w.log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // else Wait reports how it ended
		if err := cmd.Wait(); err != nil {
			w.Errorf("sse-server: %v\n%s", err, w.log.String())
		}
	})
	pattern := regexp.MustCompile(`(http://\S+)/mcp`)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if found := pattern.FindStringSubmatch(line); found != nil {
			go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the process
			return found[1] + "/sse"
		}
		if err != nil {
			w.Fatalf("sse-server printed no address: %v\n%s", err, w.log.String())
		}
	}
}

// Clients of the gateway search at once while the daemon is killed, and each gets its
// own answers: with a server for each connection, with one for all, and with warm ones.
func TestThroughTheGateway(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"PerConnection": nil,
		"Shared":        {"--sessions", "shared"},
		"Warm":          {"--warm", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			url := w.gateway(flags...)
			first := w.connect(&mcp.SSEClientTransport{Endpoint: url})
			w.ready(first)
			second := w.connect(&mcp.SSEClientTransport{Endpoint: url})
			var clients sync.WaitGroup
			for _, s := range []*mcp.ClientSession{first, second} {
				clients.Go(func() { w.findAll(s) })
			}
			if err := syscall.Kill(w.daemon(), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			clients.Wait()
			// Both clients may start a daemon. One of them finds the other, and ends.
			w.eventually("one daemon runs", func() bool { return len(w.daemons()) == 1 })
		})
	}
}

// Two gateways use one daemon, with a folder each, and neither finds the documents of
// the other.
func TestTwoGatewaysOneDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := newWorld(t)
	other.state = w.state
	other.write("secret.txt", "the thylacine sleeps\n")
	ours := w.connect(&mcp.SSEClientTransport{Endpoint: w.gateway()})
	theirs := other.connect(&mcp.SSEClientTransport{Endpoint: other.gateway("--sessions", "shared")})
	w.ready(ours)
	other.ready(theirs)
	if all := w.daemons(); len(all) != 1 {
		t.Errorf("%d daemons run: %v", len(all), all)
	}
	var got answer
	w.eventually("the second folder's document is found by its own agent", func() bool {
		got = answer{}
		err := call(t.Context(), theirs, "search", map[string]any{"query": "thylacine"}, &got)
		return err == nil && len(got.Results) == 1
	})
	document := got.Results[0].DocumentID
	got = answer{}
	if err := call(t.Context(), ours, "search", map[string]any{"query": "thylacine"}, &got); err != nil || len(got.Results) > 0 {
		t.Errorf("the first agent finds %v, %v in a folder that it was not given", got.Results, err)
	}
	if err := call(t.Context(), ours, "get_document_data", map[string]any{"document_id": document}, &got); err == nil {
		t.Error("the first agent reads a document of a folder that it was not given")
	}
}
