package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
)

// A process that cannot join its cluster ends, so that its supervisor starts it again, and
// does not say its password.
func TestNATSRefuses(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: "ada", Password: "right", NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	key := clitest.WriteFile(t, "id-key", strings.Repeat("k", 32))
	p := launch(t, "--nats", "nats://ada:wrong-password@"+s.Addr().String(), "--id-key-file", key, "--addr", "127.0.0.1:0")
	code := <-p.code
	if text := p.out.String() + p.log.String(); code != exit.Failure || !strings.Contains(text, "--nats: the cluster cannot be joined: ") || strings.Contains(text, "wrong-password") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
