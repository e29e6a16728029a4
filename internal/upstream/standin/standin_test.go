package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// person is an Asker.
type person struct {
	loggedIn atomic.Bool
	hindered atomic.Bool
	opened   atomic.Int32
	hangs    bool
}

func (p *person) LoggedIn() bool { return p.loggedIn.Load() }

func (p *person) Hindered() (string, bool) { return "call again later", p.hindered.Load() }

// lookEvery is how often AwaitLogin looks.
const lookEvery = time.Second

func (p *person) AwaitLogin(ctx context.Context) bool {
	for IsNeeded(p) {
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (p *person) Opened(context.Context) { p.opened.Add(1) }

func (p *person) Ask(ctx context.Context) (string, string, bool) {
	if p.hangs {
		<-ctx.Done()
	}
	if text, is := p.Hindered(); is {
		return text, "", false
	}
	return "Log in at https://issuer.example", "https://issuer.example", p.loggedIn.Load()
}

// nothingKnown is the recall of a server at which nobody has ever been logged in.
func nothingKnown(json.RawMessage) *remember.Answers { return nil }

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		c := New(p, nothingKnown)
		defer c.Close()
		for _, one := range []struct{ method, params, want string }{
			{"initialize", `{"protocolVersion":"2025-06-18"}`, `"protocolVersion":"2025-06-18"`},
			{"initialize", `{"protocolVersion":"2099-01-01"}`, `"protocolVersion":"2025-11-25"`},
			{"initialize", `{}`, `"tools":{"listChanged":true}`},
			{"tools/list", `{}`, `{"tools":[{"name":"login",`}, {"prompts/list", `{}`, `{"prompts":[]}`}, {"ping", `{}`, `"result":{}`},
			{"tools/call", `{"name":"login"}`, `"isError":false`},
			{"tools/call", `{"name":"of_the_server"}`, `Log in at https://issuer.example`},
			{"tools/call", `{"name":"of_the_server"}`, `"isError":true`},
			{"resources/read", `{"uri":"a:b"}`, `-32601`},
		} {
			ssetest.Must(t, c.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)))
			ssetest.Must(t, c.Send(jsonrpc.NewRequest("7", one.method, []byte(one.params))))
			got, _, err := c.RecvFor()
			ssetest.Must(t, err)
			if !strings.Contains(string(got), `"id":7`) || !strings.Contains(string(got), one.want) {
				t.Errorf("%s %s: got %s, want %s", one.method, one.params, got, one.want)
			}
		}
		ssetest.Want(t, "opened", p.opened.Load(), int32(1))
	})
}

// A server that somebody has used before has its lists, and no tool of the stand-in. What needs the login asks for it.
func TestAnswersFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var params string
		c := New(new(person), func(p json.RawMessage) *remember.Answers {
			params = string(p)
			return &remember.Answers{
				Initialize: `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"real"}}`,
				Pages:      map[string]map[string]string{"tools/list": {"": `{"tools":[{"name":"login"}],"nextCursor":"2"}`, `"2"`: `{"tools":[{"name":"echo"}]}`}},
			}
		})
		defer c.Close()
		for _, one := range []struct{ method, params, want string }{
			{"initialize", `{"protocolVersion":"2025-06-18"}`, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"real"}}`},
			{"tools/list", `{}`, `"result":{"tools":[{"name":"login"}],"nextCursor":"2"}`},
			{"tools/list", `{"cursor":"2","_meta":{"progressToken":1}}`, `"result":{"tools":[{"name":"echo"}]}`},
			{"tools/list", `{"cursor":"3"}`, `"result":{"tools":[]}`},
			{"prompts/list", `{}`, `{"prompts":[]}`}, {"ping", `{}`, `"result":{}`},
			{"tools/call", `{"name":"echo"}`, `Log in at https://issuer.example`}, {"tools/call", `{"name":"echo"}`, `"isError":true`},
			{"tools/call", `{"name":"login"}`, `"isError":true`}, // it is the server's
			{"resources/read", `{"uri":"a:b"}`, `"error":{"code":-32603,"message":"Log in at https://issuer.example","data":{"reason":"unauthorized","retryable":false,"needsLogin":true,"link":"https://issuer.example"}}`},
		} {
			ssetest.Must(t, c.Send(jsonrpc.NewRequest("7", one.method, []byte(one.params))))
			got, _, err := c.RecvFor()
			ssetest.Must(t, err)
			ssetest.WantText(t, one.method+" "+one.params, string(got), one.want)
		}
		ssetest.Want(t, "params that were recalled", params, `{"protocolVersion":"2025-06-18"}`)
	})
}

// While the login that is there cannot be used, a client has the lists of before, and calls are told to come later. If
// nothing is known, it hears so at once, and is not sent to a login. The session ends when the login can be used.
func TestLoginThatCannotBeUsed(t *testing.T) {
	lists := &remember.Answers{Initialize: `{"protocolVersion":"2025-06-18"}`,
		Pages: map[string]map[string]string{"tools/list": {"": `{"tools":[{"name":"echo"}]}`}}}
	for name, test := range map[string]struct {
		known *remember.Answers
		want  map[string]string
	}{
		"known": {lists, map[string]string{"initialize": `"result":{"protocolVersion":"2025-06-18"}`,
			"tools/list": `{"tools":[{"name":"echo"}]}`, "tools/call": `"text":"call again later","type":"text"}],"isError":true`,
			"resources/read": `"error":{"code":-32603,"message":"call again later","data":{"reason":"unauthorized","retryable":true}}`}},
		"unknown": {nil, map[string]string{
			"initialize": `"error":{"code":-32010,"message":"call again later","data":{"reason":"unauthorized","retryable":true}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := new(person)
				p.loggedIn.Store(true)
				p.hindered.Store(true)
				c := New(p, func(json.RawMessage) *remember.Answers { return test.known })
				defer c.Close()
				for _, method := range []string{"initialize", "tools/list", "tools/call", "resources/read"} {
					want, is := test.want[method]
					if !is {
						continue
					}
					ssetest.Must(t, c.Send(jsonrpc.NewRequest("7", method, []byte(`{}`))))
					got, _, err := c.RecvFor()
					ssetest.Must(t, err)
					ssetest.WantText(t, method, string(got), want)
				}
				p.hindered.Store(false)
				_, err := c.Recv()
				ssetest.Want(t, "the end", err, ErrLoggedIn)
			})
		})
	}
}

// A server without tools has the tool login all the same: nothing else would lead to the login.
func TestMemoryWithoutTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(new(person), func(json.RawMessage) *remember.Answers {
			return &remember.Answers{Initialize: `{}`, Pages: map[string]map[string]string{"tools/list": {"": `{"tools":[]}`}}}
		})
		defer c.Close()
		for method, want := range map[string]string{"initialize": "Nobody is logged in", "tools/list": `{"name":"login"`} {
			ssetest.Must(t, c.Send(jsonrpc.NewRequest("7", "initialize", []byte(`{}`))))
			initialized, _, err := c.RecvFor()
			ssetest.Must(t, err)
			ssetest.Must(t, c.Send(jsonrpc.NewRequest("8", method, []byte(`{}`))))
			got, _, err := c.RecvFor()
			ssetest.Must(t, err)
			ssetest.WantText(t, method, string(initialized)+string(got), want)
		}
	})
}

// The session ends with the login, also one that was made elsewhere.
func TestEndsWithTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		c := New(p, nothingKnown)
		began := time.Now()
		time.AfterFunc(time.Hour, func() { p.loggedIn.Store(true) })
		_, _, err := c.RecvFor()
		if took := time.Since(began); !errors.Is(err, ErrLoggedIn) || took < time.Hour || took > time.Hour+lookEvery {
			t.Errorf("got %v after %v", err, took)
		}
		ssetest.Must(t, c.Close())
		if _, _, err := c.RecvFor(); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// Nobody waits for a person for ever, and not more than a few at a time.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(&person{hangs: true}, nothingKnown)
		defer c.Close()
		call := jsonrpc.NewRequest("1", "tools/call", []byte(`{"name":"login"}`))
		for range maxCalls {
			ssetest.Must(t, c.Send(call))
		}
		if err := c.Send(call); !errors.Is(err, jsonrpc.ErrBusy) {
			t.Errorf("one more: %v", err)
		}
		began := time.Now()
		for range maxCalls {
			_, _, err := c.RecvFor()
			ssetest.Must(t, err)
		}
		ssetest.Want(t, "the wait", time.Since(began), askTimeout)
	})
}

// A client that has its person visit addresses is asked for the visit by the error for that, and told of its end. The
// tool login is text for all: it is gone after the login, when such a client would call it again.
func TestVisits(t *testing.T) {
	for _, one := range []struct {
		capabilities, tool string
		visits             bool
	}{
		{`{"elicitation":{"url":{}}}`, "of_the_server", true}, {`{"elicitation":{"form":{},"url":{}}}`, "of_the_server", true},
		{`{"elicitation":{"url":{}}}`, "login", false}, {`{"elicitation":{}}`, "of_the_server", false},
		{`{"elicitation":{"url":false}}`, "of_the_server", false}, {`{}`, "of_the_server", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := new(person)
			c := New(p, nothingKnown)
			defer c.Close()
			receive := func() string {
				got, _, err := c.RecvFor()
				ssetest.Must(t, err)
				return string(got)
			}
			ssetest.Must(t, c.Send(jsonrpc.NewRequest("1", "initialize", []byte(`{"capabilities":`+one.capabilities+`}`))))
			receive()
			ssetest.Must(t, c.Send(jsonrpc.NewRequest("2", "tools/call", []byte(`{"name":"`+one.tool+`"}`))))
			answer := receive()
			if !one.visits {
				ssetest.WantText(t, "answer", answer, `"result":{`, "Log in at https://issuer.example")
				return
			}
			ssetest.WantText(t, "answer", answer, `"code":-32042`, "Log in at https://issuer.example", `"mode":"url"`, `"url":"https://issuer.example"`)
			_, id, _ := strings.Cut(answer, `"elicitationId":"`)
			id, _, _ = strings.Cut(id, `"`)
			p.loggedIn.Store(true)
			ssetest.WantText(t, "after the login", receive(), "notifications/elicitation/complete", `"elicitationId":"`+id+`"`)
			_, _, err := c.RecvFor()
			ssetest.Want(t, "the session is over", errors.Is(err, ErrLoggedIn), true)
		})
	}
}

// Where the client says what its person has answered, that alone decides whether the request waits.
func TestAnswersToAVisit(t *testing.T) {
	for _, one := range []struct {
		visit      stateless.Visit
		wasVisited bool
		wait       time.Duration
	}{
		{stateless.VisitUnknown, false, 0}, {stateless.VisitUnknown, true, stateless.VisitTimeout},
		{stateless.VisitAgreed, false, stateless.VisitTimeout}, {stateless.VisitAgreed, true, stateless.VisitTimeout},
		{stateless.VisitRefused, false, 0}, {stateless.VisitRefused, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := New(new(person), nothingKnown)
			defer c.Close()
			do := func(method string, params json.RawMessage) string {
				ssetest.Must(t, c.Send(jsonrpc.NewRequest("1", method, params)))
				got, _, err := c.RecvFor()
				ssetest.Must(t, err)
				return string(got)
			}
			do("initialize", json.RawMessage(`{"capabilities":{"elicitation":{"url":{}}}}`))
			call := json.RawMessage(`{"name":"a"}`)
			if one.wasVisited {
				do("tools/call", call)
			}
			began := time.Now()
			ssetest.WantText(t, "answer", do("tools/call", stateless.MarkVisit(call, one.visit)), `"code":-32042`)
			ssetest.Want(t, fmt.Sprintf("the wait after %q, %t", one.visit, one.wasVisited), time.Since(began), one.wait)
		})
	}
}

// Of several requests that wait one goes on after the login. The error of another says that it may be repeated.
func TestRequestsThatDoNotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		c := New(p, func(json.RawMessage) *remember.Answers {
			return &remember.Answers{Initialize: `{}`, Pages: map[string]map[string]string{"tools/list": {"": `{"tools":[{"name":"a"}]}`}}}
		})
		defer c.Close()
		ssetest.Must(t, c.Send(jsonrpc.NewRequest("1", "initialize", []byte(`{}`))))
		_, _, err := c.RecvFor()
		ssetest.Must(t, err)
		for _, id := range []jsonrpc.ID{"2", "3"} {
			ssetest.Must(t, c.Send(jsonrpc.NewRequest(id, "resources/read", stateless.MarkVisit([]byte(`{"uri":"a:b"}`), stateless.VisitAgreed))))
			synctest.Wait()
		}
		p.loggedIn.Store(true)
		got, _, err := c.RecvFor()
		ssetest.Must(t, err)
		ssetest.WantText(t, "the other one", string(got), `"id":3,"error":{`, `"data":{"reason":"session_lost","retryable":true}`)
		_, _, err = c.RecvFor()
		again, ok := errors.AsType[*jsonrpc.NotTakenError](err)
		ssetest.Want(t, "the one that goes on", ok && again.ID == "2", true)
	})
}

// A request that is sent again after a visit waits for the login, for a while: the client's person has only agreed to the
// visit. After the login it goes on in the session with the server, and another one that waits is told to come again.
func TestRequestsWaitAfterAVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		c := New(p, nothingKnown)
		defer c.Close()
		receive := func() string {
			got, _, err := c.RecvFor()
			ssetest.Must(t, err)
			return string(got)
		}
		call := func(id jsonrpc.ID, tool string) {
			ssetest.Must(t, c.Send(jsonrpc.NewRequest(id, "tools/call", []byte(`{"name":"`+tool+`","_meta":{"progressToken":`+string(id)+`}}`))))
		}
		ssetest.Must(t, c.Send(jsonrpc.NewRequest("1", "initialize", []byte(`{"capabilities":{"elicitation":{"url":{}}}}`))))
		receive()
		began := time.Now()
		call("2", "a")
		call("3", "b")
		ssetest.WantText(t, "first answers", receive()+receive(), `"id":2,"error":{"code":-32042`, `"id":3,"error":{"code":-32042`)
		ssetest.Want(t, "the wait for the first answers", time.Since(began), time.Duration(0))
		call("4", "a")
		ssetest.WantText(t, "nobody has logged in", receive(), `"id":4,"error":{"code":-32042`)
		ssetest.Want(t, "the wait for that", time.Since(began), stateless.VisitTimeout)
		call("5", "a")
		synctest.Wait()
		call("6", "b")
		synctest.Wait()
		p.loggedIn.Store(true)
		for range 3 {
			ssetest.WantText(t, "after the login", receive(), "notifications/elicitation/complete")
		}
		ssetest.WantText(t, "the other one that waits", receive(), `"id":6,"result":{`, "Somebody has logged in: call again.", `"isError":true`)
		_, _, err := c.RecvFor()
		if again, ok := errors.AsType[*jsonrpc.NotTakenError](err); !ok || again.ID != "5" || !errors.Is(err, ErrLoggedIn) {
			t.Errorf("the session ends with %v", err)
		}
		ssetest.Want(t, "after the end", c.Send(jsonrpc.NewRequest("7", "tools/call", []byte(`{"name":"a"}`))), error(ErrLoggedIn))
	})
}
