package config

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

// A server gets the variables of its env-file, and an error names the file and shows nothing of it.
func TestEnvFileOfAServer(t *testing.T) {
	c := mustLoad(t, nil, "--env-file", clitest.WriteFile(t, "env", "A=1"), "--", "x")
	if got := c.variables()["A"]; got != "1" {
		t.Errorf("got %q", got)
	}
	file := clitest.WriteFile(t, "env", "A=1\nB "+secret)
	_, err := Load([]string{"--env-file", file, "--", "x"}, clitest.Environment(nil), new(Config))
	if err == nil || !strings.Contains(err.Error(), file+": line 2: want NAME=VALUE") || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}
