package secretprogram

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The test is the program too.
func TestMain(m *testing.M) {
	switch os.Getenv("SECRETPROGRAM_TEST") {
	case "print":
		_, _ = os.Stdout.WriteString("  $(s3cret) ${X}\n")
		_, _ = os.Stderr.WriteString("s3cret")
	case "fail":
		_, _ = os.Stdout.WriteString("s3cret")
		_, _ = os.Stderr.WriteString("s3cret")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Minute)
	case "much":
		_, _ = os.Stdout.WriteString(strings.Repeat("x", maxBytes+1))
	case "nothing":
	default:
		os.Exit(m.Run())
	}
}

func TestRead(t *testing.T) {
	self, err := os.Executable()
	ssetest.Must(t, err)
	for does, want := range map[string]string{
		"fail": "has failed: exit status 3", "hang": "has not ended within", "much": "has printed over 64 KiB", "nothing": "has printed nothing",
	} {
		t.Setenv("SECRETPROGRAM_TEST", does)
		limit := timeout
		if does == "hang" {
			limit = 50 * time.Millisecond
		}
		got, err := read([]string{self}, limit)
		ssetest.WantText(t, does, err, want)
		ssetest.Want(t, does, got, "")
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error has the secret: %v", err)
		}
	}
	t.Setenv("SECRETPROGRAM_TEST", "print")
	got, err := Read([]string{self})
	ssetest.Must(t, err)
	ssetest.Want(t, "secret", got, "$(s3cret) ${X}")
	for _, command := range [][]string{nil, {""}, {"no-such-program-at-all"}} {
		if got, err := Read(command); err == nil {
			t.Errorf("%q: got %q", command, got)
		}
	}
}
