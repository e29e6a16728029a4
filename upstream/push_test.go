package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

func TestHandlePushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := upstreamtest.Dial(t, upstream.Handle(func(_ context.Context, msg json.RawMessage) any { return msg }))
		type event struct {
			msg string
			err error
		}
		events := make(chan event, 10)
		conn.(jsonrpc.Local).Push(func(msg []byte, err error) {
			events <- event{string(msg), err}
		})
		for range 3 {
			upstreamtest.Send(t, conn, upstreamtest.Ping)
			if got := <-events; got.msg != upstreamtest.Ping || got.err != nil {
				t.Errorf("got %q, %v, want the answer", got.msg, got.err)
			}
		}
		if err := errors.Join(conn.Close(), conn.Close()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if got := <-events; !errors.Is(got.err, jsonrpc.ErrClosed) || len(events) != 0 {
			t.Errorf("got %q, %v and %d more, want ErrClosed once", got.msg, got.err, len(events))
		}
	})
}

// An answer that was handed over but not taken counts toward the session's bound.
func TestHandlePushCountsWhatIsNotTaken(t *testing.T) {
	big := make([]byte, upstream.SendLimit)
	for i := range big {
		big[i] = 'x'
	}
	msg := []byte(`{"jsonrpc":"2.0","id":1,"method":"ping","params":["` + string(big) + `"]}`)
	synctest.Test(t, func(t *testing.T) {
		conn := upstreamtest.Dial(t, upstream.Handle(func(_ context.Context, _ json.RawMessage) any { return []byte(`{}`) }))
		take := make(chan struct{})
		conn.(jsonrpc.Local).Push(func([]byte, error) {
			<-take
		})
		if err := conn.Send(msg); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := conn.Send([]byte(upstreamtest.Ping)); !errors.Is(err, jsonrpc.ErrBusy) {
			t.Errorf("Send: got %v, want ErrBusy", err)
		}
		take <- struct{}{}
		synctest.Wait()
		if err := conn.Send([]byte(upstreamtest.Ping)); err != nil {
			t.Errorf("Send after the answer was taken: %v", err)
		}
		close(take)
	})
}
