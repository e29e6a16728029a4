package config

import (
	"flag"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite docs/reference/config.md from the table of options")

const secret = "s3cret-0123456789"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loadWith loads a configuration that need not be right.
func loadWith(t *testing.T, env map[string]string, args ...string) (*Config, []string) {
	t.Helper()
	return Load(args, clitest.Environment(env))
}

// mustLoad loads a configuration that must be right.
func mustLoad(t *testing.T, env map[string]string, args ...string) *Config {
	t.Helper()
	l, faults := loadWith(t, env, args...)
	if len(faults) > 0 {
		t.Fatalf("load %q: got faults\n%s", args, strings.Join(faults, "\n"))
	}
	return l
}

// settingOf returns an option of a configuration as the file takes it.
func settingOf(c *Config, name string) string { return c.row(name).value.text() }

// environ returns the environment variables that a configuration adds.
func environ(c *Config) []string {
	var all []string
	for _, variable := range c.env {
		all = append(all, variable[0]+"="+variable[1])
	}
	return all
}
