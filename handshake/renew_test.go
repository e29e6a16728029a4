package handshake

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A wish that the server is started for what it says comes to what its table says.
func TestBeginningsOfARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientOf := func(version string) remember.Client {
			client, _ := remember.ClientOf(json.RawMessage(`{"protocolVersion":"`+version+`"}`), remember.Own)
			return client
		}
		one, other := clientOf("2025-11-25"), clientOf("2025-06-18")
		r := &renewal{}
		after := func(d time.Duration) func() { return func() { time.Sleep(d) } }
		end := func(err error) func() { return func() { r.endStart(err) } }
		for _, tc := range []struct {
			name string
			do   func()
			of   remember.Client
			want beginning
		}{
			{"the first wish", func() {}, one, begins},
			{"a wish for an equal client meanwhile", func() {}, one, runsForEqual},
			{"a wish for another client meanwhile", func() {}, other, runsForOther},
			{"a wish after a start that worked", end(nil), other, begins},
			{"a wish after one that failed", end(errors.New("there is none")), other, mayNotBegin},
			{"a wish of another client then", func() {}, one, mayNotBegin},
			{"a wish after the pause", after(maxRenewPause), one, begins},
			{"a wish after another failure", end(errNothingLearned), one, mayNotBegin},
		} {
			tc.do()
			how, _ := r.beginStart(tc.of, make(chan struct{}))
			ssetest.Want(t, tc.name, how, tc.want)
		}
	})
}

// A client that has sent something that others have not is told of nothing, so no server starts for it.
func TestNoRenewalForAClientThatIsToldOfNothing(t *testing.T) {
	s := NewSupplier(noServer{}, SupplierOptions{Session: multiplex.Options{Logger: slog.New(slog.DiscardHandler)}})
	how, over := s.learnUnlessSince(time.Now(), json.RawMessage(`{"words":"own"}`), remember.Own)
	<-over
	ssetest.Want(t, "beginning", how, mayNotBegin)
	s.Close()
	s.Wait()
}
