package statelessserver_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// acknowledge sends what each listen begins with.
func (p *post) acknowledge() {
	honoured := strings.ReplaceAll(p.param("notifications"), "nobody://tells", "x")
	p.event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID},"notifications":` + honoured + `}}`)
}

// A stream of changes that always breaks is opened again and again, at most 30 s apart on
// average.
func TestListenPausesGrowUpToABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStateless(t, changing, func(p *post) { p.acknowledge() })
		s.initialize(`{}`)
		time.Sleep(time.Hour)
		// 120 pauses, and their sum is far off once in very many runs.
		if n := len(s.seen("subscriptions/listen")); n < 80 || n > 200 {
			t.Errorf("there were %d listens in an hour", n)
		}
	})
}

// While a stream of changes was cut, or the server away, its lists may have changed, and
// nobody has told.
func TestChangesThatMayHaveBeenMissedAreTold(t *testing.T) {
	for _, away := range []time.Duration{0, 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s := newStateless(t, changing, func(p *post) {
				since := time.Since(began)
				if since > 10*time.Second && since < 10*time.Second+away {
					p.w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				p.acknowledge()
				if since > 10*time.Second {
					<-p.r.Context().Done()
					return
				}
				time.Sleep(10*time.Second - since)
			})
			s.initialize(`{}`)
			s.Send(subscribe("1", "a://1"))
			s.want(done("1"))
			time.Sleep(2 * time.Minute) // longer than the server is away
			told := make(map[string]bool)
			for range 3 {
				got, _ := s.Recv()
				told[got] = true
			}
			for _, want := range []string{
				`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`,
				`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1"}}`,
			} {
				if !told[want] {
					t.Errorf("no %s among %v", want, told)
				}
			}
			_ = s.Conn.Close()
			synctest.Wait()
		})
	}
}

func TestServerWithoutListenIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStateless(t, changing, func(p *post) { p.fail(404, `{"code":-32601,"message":"no"}`) })
		s.initialize(`{}`)
		time.Sleep(time.Hour)
		ssetest.Want(t, "listens", len(s.seen("subscriptions/listen")), 1)
		s.Send(subscribe("1", "a://1"))
		s.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`)
	})
}

func TestSubscriptionThatIsNotAcknowledgedFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStateless(t, `{"capabilities":{"resources":{"subscribe":true}}}`, func(p *post) {
			p.event(``)
			<-p.r.Context().Done()
		})
		s.initialize(`{}`)
		began := time.Now()
		s.Send(subscribe("1", "a://1"))
		s.WantError("1", "not_subscribed")
		ssetest.Want(t, "time", time.Since(began), 10*time.Second)
		synctest.Wait() // the response is closed
	})
}

// A server that only asks to come again is not asked in a tight loop, and not for
// ever.
func TestStateAloneIsSentBackWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStateless(t, discovered, func(p *post) {
			ssetest.Want(t, "inputResponses", p.param("inputResponses"), "")
			p.result(input("", `"later"`))
		})
		s.initialize(`{}`)
		began := time.Now()
		s.Send(toolCall("1", "busy"))
		s.WantError("1", "input_rounds")
		if took := time.Since(began); took < 100*time.Millisecond || took > 30*time.Second {
			t.Errorf("%d rounds took %v", stateless.MaxRounds, took)
		}
	})
}

// deaf is a transport that does not heed the end of a request.
type deaf struct{ release chan struct{} }

func (d deaf) RoundTrip(*http.Request) (*http.Response, error) {
	<-d.release
	return nil, http.ErrServerClosed
}

func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deaf{make(chan struct{})}
		conn := newConn(discovered, &http.Client{Transport: d}, slog.New(slog.DiscardHandler))
		upstreamtest.Send(t, conn, toolCall("1", "a"))
		began := time.Now()
		ssetest.Want(t, "Close", conn.Close(), nil)
		ssetest.Want(t, "time of Close", time.Since(began), 2*time.Second)
		close(d.release)
		synctest.Wait()
	})
}

// The client may be asked only so much at a time, over all calls of a session.
func TestQuestionsOfASessionAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		questions := `{"k":{"method":"roots/list"}`
		for i := range stateless.MaxInputs - 1 {
			questions += fmt.Sprintf(`,"k%d":{"method":"roots/list"}`, i)
		}
		s := newStateless(t, discovered, func(p *post) { p.result(input(questions+"}", "")) })
		s.initialize(`{"roots":{}}`)
		calls := 256 / stateless.MaxInputs
		for i := range calls + 1 {
			s.Send(toolCall(strconv.Itoa(i), "ask"))
			synctest.Wait()
		}
		for range 256 {
			s.Recv()
		}
		s.WantError(strconv.Itoa(calls), "input_busy")
	})
}

// A session may be closed at any moment of its work: Recv ends with the reason,
// nothing is left behind, and nothing panics.
func TestCloseAtAnyMoment(t *testing.T) {
	for round := range 200 {
		s := newStateless(t, changing, func(p *post) {
			switch p.m.Method {
			case "subscriptions/listen":
				p.acknowledge()
				p.event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				<-p.r.Context().Done()
			case "tools/call":
				p.result(input(`{"a":{"method":"roots/list"}}`, `"s"`))
			default:
				p.result(`{}`)
			}
		})
		ended := make(chan error, 1)
		go func() { // ends with the session
			for received := 0; ; received++ {
				if received == round%20 {
					go s.Conn.Close()
				}
				if _, _, err := s.Conn.RecvFor(); err != nil {
					ended <- err
					return
				}
			}
		}()
		for _, msg := range []string{
			initializeWithRoots, upstreamtest.Initialized, toolCall("1", "a"), subscribe("2", "a://1"), `{"jsonrpc":"2.0","id":3,"method":"ping"}`,
			unsubscribe("4", "a://1"), toolCall("5", "b"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`,
			`{"jsonrpc":"2.0","method":"vendor/x"}`, subscribe("6", "a://2"),
		} {
			if err := s.Conn.Send([]byte(msg)); err != nil && !errors.Is(err, jsonrpc.ErrClosed) {
				t.Fatalf("Send(%s): %v", msg, err)
			}
		}
		if round%20 >= 5 { // fewer messages than that always come
			_ = s.Conn.Close()
		}
		select {
		case err := <-ended:
			if !errors.Is(err, jsonrpc.ErrClosed) {
				t.Fatalf("round %d: the session ended with %v", round, err)
			}
		case <-time.After(upstreamtest.Patience):
			t.Fatalf("round %d: Recv did not end", round)
		}
	}
}

const initializeWithRoots = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"capabilities":{"roots":{}}}}`
