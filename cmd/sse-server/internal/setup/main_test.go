package setup

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
)

const (
	secret       = "s3cret-0123456789"
	tokenOfAlice = "0123456789abcdef"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mustLoad loads a configuration that must be right.
func mustLoad(t *testing.T, env map[string]string, args ...string) *config.Config {
	t.Helper()
	c, err := config.Load(args, clitest.Environment(env), new(config.Config))
	if err != nil {
		t.Fatalf("load %q: %v", args, err)
	}
	return c
}

// ran is a command that has run.
type ran struct {
	t        *testing.T
	out, log bytes.Buffer
	code     int
}

// runWith runs init or connect with environment variables.
func runWith(t *testing.T, env map[string]string, args ...string) *ran {
	t.Helper()
	return runAsked(t, env, "", nil, args...)
}

// runAsked is runWith on a terminal where a person types the answers; with none, there is no terminal. try starts the
// servers.
func runAsked(
	t *testing.T, env map[string]string, answers string, try func(file string, args ...string) (string, int), args ...string,
) *ran {
	t.Helper()
	r := &ran{t: t}
	cmd := &Command{Stdout: &r.out, Stderr: &r.log, LookupEnv: clitest.Environment(env), Try: try}
	if answers != "" {
		cmd.Answers = strings.NewReader(answers)
	}
	c, err := config.Load(args, cmd.LookupEnv, new(config.Config))
	switch {
	case err != nil:
		r.code = exit.Refuse(&r.log, err)
	case c.Does == "init":
		r.code = cmd.Init(c)
	case c.Does == "connect":
		r.code = cmd.Connect(c)
	default:
		t.Fatalf("%q is neither init nor connect", args)
	}
	return r
}

// wantExit checks the exit code.
func (r *ran) wantExit(want int) {
	r.t.Helper()
	if r.code != want {
		r.t.Errorf("got exit code %d, want %d\n%s", r.code, want, r.log.String())
	}
}
