package multiplex_test

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const roots = `{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{"_meta":{"x":1.0}}}`

// serving has the clients serve roots/list.
func serving(w *world) {
	for _, c := range w.clients {
		c.serves = []string{"roots/list"}
	}
}

var gatewayID = regexp.MustCompile(`"gw-[A-Z2-7]{8}-[0-9]+"`)

// delivered expects the server's request at the first client, under an id of
// ours, which it returns.
func delivered(w *world, method string) string {
	w.Helper()
	lines := w.clients[0].take()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "deliver ") || !strings.Contains(lines[0], `"`+method+`"`) {
		w.Fatalf("client got %q, want one %s", lines, method)
	}
	id := gatewayID.FindString(lines[0])
	if id == "" {
		w.Fatalf("%s has no id of ours", lines[0])
	}
	return id
}

// A person who fills in a form takes longer than a server may: until there is an
// answer, or MaxRequestTimeout is over, the call that waits for it goes on.
func TestCallWaitsForTheAnswerOfItsClient(t *testing.T) {
	opts := multiplex.Options{RequestTimeout: 10 * time.Second, MaxRequestTimeout: time.Minute}
	ask := func(w *world) {
		w.clients[0].serves = []string{"elicitation/create"}
		play(w, []step{hears, forward(callA), sent(call("1")), after(5 * time.Second), server(elicit("7"))})
	}
	const toolLate = `fail "a": timeout, final (timeout)`
	for name, rest := range map[string]func(id string) []step{
		"answered": func(id string) []step {
			return []step{
				after(37 * time.Second), got(), sent(), forward(result(id)), sent(result("7")),
				after(7 * time.Second), got(), server(result("1")), got(answer(`"a"`)),
			}
		},
		"answered, then the server is slow": func(id string) []step {
			return []step{
				after(20 * time.Second), forward(result(id)), sent(result("7")), after(10 * time.Second),
				sent(cancelled("1", timedOut)), got(toolLate),
			}
		},
		"never answered": func(string) []step {
			return []step{
				after(55*time.Second - 1), got(), sent(), after(1), sent(cancelled("1", timedOut)), got(toolLate),
				after(5 * time.Second), sent(`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the client did not answer in 1m0s"}}`),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctestWorld(t, scenario{opts: opts}, func(w *world) {
				ask(w)
				play(w, rest(delivered(w, "elicitation/create")))
			})
		})
	}
}

// A person is not asked for what the client has cancelled. A question that may be for another request passes.
func TestQuestionForACancelledRequestIsRefused(t *testing.T) {
	const cancelA, question = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`, `{"jsonrpc":"2.0","id":7,"method":"elicitation/create"}`
	synctestWorld(t, scenario{}, func(w *world) {
		w.clients[0].serves = []string{"elicitation/create"}
		play(w, []step{
			forward(callA, cancelA), sent(call("1"), `{"jsonrpc":"2.0","method":"notifications/cancelled"*`),
			server(question), sent(`{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"the client has cancelled the request"}}`),
			got(), dropped(metrics.DroppedUnknownRequest, 1),
			forward(callB), sent(call("2")), server(question), sent(),
		})
		delivered(w, "elicitation/create")
		play(w, []step{server(result("1")), server(result("2")), got(answer(`"a"`), answer(`"b"`))})
	})
}

func TestServerRequestsAreBounded(t *testing.T) {
	const bound = 256
	synctestWorld(t, scenario{}, func(w *world) {
		serving(w)
		for i := range bound {
			play(w, []step{server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i))})
		}
		ids := w.clients[0].take()
		play(w, []step{
			server(`{"jsonrpc":"2.0","id":"more","method":"roots/list"}`), got(),
			sent(`{"jsonrpc":"2.0","id":"more","error":{"code":-32603,"message":"over 256 requests to the client are unanswered"}}`),
			dropped(metrics.DroppedNotReady, 1),
			forward(result(gatewayID.FindString(ids[3]))), sent(result("3")),
			server(`{"jsonrpc":"2.0","id":"again","method":"roots/list"}`), sent(),
		})
		delivered(w, "roots/list")
	})
}

// The ids that a client sees are of one session: what it answers to a session
// that is gone means nothing to the next one.
func TestAnswerOfAnOldSessionDoesNotReachTheNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := newWorld(t, multiplex.Options{}, 1), newWorld(t, multiplex.Options{}, 1)
		serving(old)
		serving(next)
		play(old, []step{server(roots)})
		play(next, []step{server(roots)})
		oldID, nextID := delivered(old, "roots/list"), delivered(next, "roots/list")
		if oldID == nextID {
			t.Fatalf("both sessions used the id %s", oldID)
		}
		play(old, []step{fault(io.EOF), forward(result(oldID)), sent()})
		play(next, []step{
			forward(result(oldID)), sent(), dropped(metrics.DroppedUnknownResponse, 1),
			forward(result(nextID)), sent(result("7")),
		})
		old.finish()
		next.finish()
	})
}

// A program that only echoes, like cat, sends initialize back, and then its refusal, which
// fails the start at once.
func TestEchoedInitializeFailsAtOnce(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the program only sends back what it gets: it is not an MCP server"}}`
	runScenarios(t, []scenario{{name: "of our own", steps: []step{
		own("initialize", time.Minute), sent(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`),
		server(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`), sent(refusal), server(refusal), got("own initialize: " + refusal),
	}}})
}

// While one client holds up the reader, all clients wait. The session still ends
// when it is closed.
func TestCloseWhileAClientHoldsUpTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFakeConn()
		s := multiplex.New(conn, multiplex.Options{})
		held := &holdingClient{release: make(chan struct{})}
		caller := attach(s, held, "held", "")
		caller.Forward(parse(t, callA))
		conn.in <- incoming{data: []byte(result("1"))}
		synctest.Wait()
		caller.Forward(parse(t, callB))
		s.Close(errTestOver)
		close(held.release)
		<-s.Done()
		ssetest.Want(t, "what the client got", strings.Join(held.take(), "\n"), `fail "b": session_lost, final (session_lost)`)
	})
}

type holdingClient struct {
	fakeClient
	release chan struct{}
}

func (c *holdingClient) Answer(jsonrpc.ID, []byte, string) { <-c.release }

func elicit(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{"message":"m"}}`
}

// unserved is the refusal of a request that no client is asked.
func unserved(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"the client does not serve ` + method + `"}}`
}

func TestServerRequestsAreRefusedWhereNoClientServesThem(t *testing.T) {
	serves := func(w *world) { w.clients[0].serves = []string{"elicitation/create"} }
	runScenarios(t, []scenario{
		{name: "on a shared session, also when they came with a request", opts: shared, clients: 2, attributed: true, steps: []step{
			serves, from(0, callA), discard, with("1", elicit("5")), sent(unserved("5", "elicitation/create")), at(0), at(1),
			dropped(metrics.DroppedUnknownRequest, 1), with("1", result("1")), at(0, answer(`"a"`)),
		}},
		{name: "when the client has not declared it", steps: []step{
			serves, server(roots), sent(unserved("7", "roots/list")), got(), dropped(metrics.DroppedUnknownRequest, 1),
		}},
	})
}

func TestServerTakesItsRequestBack(t *testing.T) {
	synctestWorld(t, scenario{}, func(w *world) {
		play(w, []step{serving, server(roots)})
		id := delivered(w, "roots/list")
		play(w, []step{
			server(cancelOf("8")), got(), dropped(metrics.DroppedUnknownRequest, 1),
			server(cancelOf("7")), got(delivery(cancelOf(id))),
			forward(result(id)), sent(), dropped(metrics.DroppedUnknownResponse, 1),
		})
	})
}
