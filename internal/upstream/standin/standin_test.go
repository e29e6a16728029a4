package standin

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// person is an Asker.
type person struct {
	loggedIn atomic.Bool
	opened   atomic.Int32
	hangs    bool
}

func (p *person) LoggedIn() bool { return p.loggedIn.Load() }

func (p *person) Opened() { p.opened.Add(1) }

func (p *person) Ask(ctx context.Context) (string, string, bool) {
	if p.hangs {
		<-ctx.Done()
	}
	return "Log in at https://issuer.example", "https://issuer.example", p.loggedIn.Load()
}

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		c := New(p)
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

// The session ends within a second after the login, also one that was made elsewhere.
func TestEndsWithTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		c := New(p)
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
		c := New(&person{hangs: true})
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
			c := New(p)
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
