package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

// observed returns the sessions' dialer of a gateway.
func observed(h upstream.Handle) jsonrpc.Dialer { return h.Observed(nil, nil, nil) }

// The contexts of a call end with a cancellation, when the function has returned, and
// with the session, whenever the function asks for their end.
func TestContextOfACallEnds(t *testing.T) {
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	for name, end := range map[string]func(t *testing.T, conn jsonrpc.Conn, proceed chan struct{}){
		"Cancelled": func(t *testing.T, conn jsonrpc.Conn, proceed chan struct{}) {
			upstreamtest.Send(t, conn, cancel)
		},
		"Returned": func(_ *testing.T, _ jsonrpc.Conn, proceed chan struct{}) { close(proceed) },
		"Closed": func(t *testing.T, conn jsonrpc.Conn, proceed chan struct{}) {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/asked before %t", name, early), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ctx, derived context.Context
					proceed := make(chan struct{})
					conn := upstreamtest.Dial(t, upstream.Handle(func(c context.Context, msg json.RawMessage) any {
						if m, _ := jsonrpc.Parse(msg); m.Kind == jsonrpc.Notification {
							return nil
						}
						ctx = c
						if early {
							var stop context.CancelFunc
							derived, stop = context.WithTimeout(c, time.Hour)
							defer stop()
						}
						<-proceed
						return nil
					}))
					upstreamtest.Send(t, conn, upstreamtest.Ping)
					synctest.Wait()
					if err := ctx.Err(); err != nil {
						t.Errorf("Err before the end: %v", err)
					}
					end(t, conn, proceed)
					synctest.Wait()
					if derived == nil {
						var stop context.CancelFunc
						derived, stop = context.WithCancel(ctx)
						defer stop()
					}
					for _, c := range []context.Context{ctx, derived} {
						select {
						case <-c.Done():
						default:
							t.Error("Done is open")
						}
						if !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(c), context.Canceled) {
							t.Errorf("Err = %v, Cause = %v", c.Err(), context.Cause(c))
						}
					}
					if _, ok := ctx.Deadline(); ok || ctx.Value("key") != nil {
						t.Error("the context has a deadline or a value")
					}
					if name != "Returned" {
						close(proceed)
					}
				})
			})
		}
	}
}

// A context that derives from that of a call costs no goroutine.
func TestDerivedContextNeedsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []byte
		conn := upstreamtest.Dial(t, upstream.Handle(func(ctx context.Context, msg json.RawMessage) any {
			child, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			defer context.AfterFunc(child, func() {})()
			all = make([]byte, 1<<20)
			all = all[:runtime.Stack(all, true)]
			return msg
		}))
		upstreamtest.Send(t, conn, upstreamtest.Ping)
		upstreamtest.Recv(t, conn)
		if at := bytes.Index(all, []byte("created by context.")); at >= 0 {
			t.Errorf("a context waits in a goroutine: %.200s", all[max(0, at-100):])
		}
	})
}

// Sessions of one gateway share goroutines, which wait for the next call while one of
// the sessions is open, and not longer: else the bubble would not end.
func TestWorkersServeAllSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialer := observed(func(_ context.Context, msg json.RawMessage) any { return msg })
		conns := make([]jsonrpc.Conn, 100)
		for i := range conns {
			conns[i] = upstreamtest.Dial(t, dialer)
			upstreamtest.Send(t, conns[i], upstreamtest.Ping)
			upstreamtest.Recv(t, conns[i])
			synctest.Wait()
		}
		if n := upstream.IdleWorkers(conns[0]); n != 1 {
			t.Errorf("%d goroutines wait after calls that came one after the other, want 1", n)
		}
		for _, conn := range conns {
			if err := errors.Join(conn.Close(), conn.Close()); err != nil {
				t.Error(err)
			}
		}
		if n := upstream.IdleWorkers(conns[0]); n != 0 {
			t.Errorf("%d goroutines are left", n)
		}
	})
}

func TestIdleWorkersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		conn := upstreamtest.Dial(t, observed(func(_ context.Context, msg json.RawMessage) any {
			<-release
			return msg
		}))
		for range 2 * upstream.MaxIdleWorkers {
			upstreamtest.Send(t, conn, upstreamtest.Ping)
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if n := upstream.IdleWorkers(conn); n != upstream.MaxIdleWorkers {
			t.Errorf("%d goroutines wait, want %d", n, upstream.MaxIdleWorkers)
		}
	})
}

// Neither a panic nor runtime.Goexit nor a call that outlives its session takes a worker
// from the others, or leaves one behind.
func TestWorkersOutliveBadFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		late := make(chan struct{})
		dialer := observed(func(_ context.Context, msg json.RawMessage) any {
			calls++
			switch calls {
			case 1:
				panic("boom")
			case 2:
				runtime.Goexit()
			case 3:
				<-late
			}
			return msg
		})
		conn := upstreamtest.Dial(t, dialer)
		for range 2 {
			upstreamtest.Send(t, conn, upstreamtest.Ping)
			upstreamtest.Recv(t, conn)
			synctest.Wait()
		}
		upstreamtest.Send(t, conn, upstreamtest.Ping)
		synctest.Wait()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		close(late)
		synctest.Wait()
		again := upstreamtest.Dial(t, dialer)
		upstreamtest.Send(t, again, upstreamtest.Ping)
		if got := upstreamtest.Recv(t, again); got != upstreamtest.Ping {
			t.Errorf("got %s, want %s", got, upstreamtest.Ping)
		}
	})
}

// Calls and ends of many sessions at once, for the race detector.
func TestWorkersUnderLoad(t *testing.T) {
	dialer := observed(func(ctx context.Context, msg json.RawMessage) any {
		runtime.Gosched()
		return msg
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				conn, err := dialer.Dial(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				for range 5 {
					upstreamtest.Send(t, conn, upstreamtest.Ping)
					if got := upstreamtest.Recv(t, conn); got != upstreamtest.Ping {
						t.Errorf("got %s", got)
					}
				}
				_ = conn.Send([]byte(upstreamtest.Ping)) // its answer is dropped
				_ = conn.Close()                         // cannot fail
			}
		})
	}
	wg.Wait()
}
