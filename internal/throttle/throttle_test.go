package throttle_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

// Each message has its own limit, which all loggers of a Lines share.
func TestLinesOfASourceAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(bytes.Buffer)
		log := ssetest.Logger(out)
		lines := throttle.NewLines()
		limited, other := lines.Logger(log), lines.Logger(log).With("session", 2)
		for range 500 {
			limited.Warn("bad message", "err", "e")
			other.Warn("bad message", "err", "e")
			limited.Debug("dropped")
		}
		other.Info("rare")
		ssetest.Want(t, "warnings", strings.Count(out.String(), "bad message"), 5)
		ssetest.Want(t, "debug lines", strings.Count(out.String(), "dropped"), 100)
		if !strings.HasSuffix(out.String(), "level=INFO msg=rare session=2\n") {
			t.Errorf("another message was suppressed:\n%s", out)
		}
		out.Reset()
		time.Sleep(time.Second)
		other.Warn("bad message", "err", "e")
		limited.Warn("bad message", "err", "e")
		lines.Flush(log)
		lines.Flush(log)
		want := `level=WARN msg="bad message" session=2 err=e suppressed=995
level=WARN msg="log lines left out" line="bad message" suppressed=1
level=WARN msg="log lines left out" line=dropped suppressed=400
`
		ssetest.Want(t, "log", out, want)
	})
}

func TestNothingIsLostBetweenCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(bytes.Buffer)
		log := ssetest.Logger(out)
		limited := throttle.NewLines().Logger(log)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { limited.Warn("w") })
		}
		all.Wait()
		time.Sleep(time.Second)
		limited.Warn("w")
		if !strings.HasSuffix(out.String(), "msg=w suppressed=95\n") {
			t.Errorf("got\n%s", out)
		}
	})
}
