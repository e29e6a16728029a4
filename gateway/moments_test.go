package gateway_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// atLine calls do at the first line of the log with a message.
type atLine struct {
	slog.Handler
	message string
	do      func()
}

func (h *atLine) Enabled(context.Context, slog.Level) bool { return true }
func (h *atLine) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *atLine) WithGroup(string) slog.Handler            { return h }
func (h *atLine) Handle(_ context.Context, r slog.Record) error {
	if do := h.do; r.Message == h.message && do != nil {
		h.do = nil
		do()
	}
	return nil
}

// initializesAtTheEndOfAStart has a client initialize at the moment when its first start has failed.
func initializesAtTheEndOfAStart(t *testing.T, with gateway.Settings, want string) {
	h := &atLine{message: "session start failed"}
	with.Logger = slog.New(h)
	inFakeTime(t, &server{dial: failing(1)}, with, func(t *testing.T, g *gateway.Gateway) {
		var p *peer
		ready := make(chan struct{})
		h.do = func() {
			<-ready
			p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		}
		p = connect(t, g, plain)
		close(ready)
		synctest.Wait()
		time.Sleep(time.Millisecond)
		p.want(want)
	})
}

// An initialize that comes at the moment when a start has failed begins the next one, as one that comes in the pause
// does.
func TestInitializeAtTheEndOfAFailedStart(t *testing.T) {
	initializesAtTheEndOfAStart(t, gateway.Settings{}, "0 *")
}

// With one attempt in a row, such an initialize is not answered with the failure of a start that it did not cause.
func TestInitializeAtTheEndOfTheLastStart(t *testing.T) {
	initializesAtTheEndOfAStart(t, gateway.Settings{MaxHandshakeAttempts: 1}, `0 {"protocolVersion"*`)
}
