package connstate_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A draining connection is quiet only when its last answer is in the outbox. So
// closing it gracefully then loses nothing.
func TestQuietComesAfterTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connstate.NewRegistry(connstate.Limits{}, connstate.Options{OutboxBytes: 1})
		c, err := r.Open(connstate.Client{Dialect: connstate.EventMessage})
		if err != nil {
			t.Fatal(err)
		}
		c.Bind(nothing{})
		defer func() { c.Close("client"); r.Remove(c) }()
		if err := c.BeginID("1", "tools/call"); err != nil {
			t.Fatal(err)
		}
		var taken []connstate.Event
		c.Attach(func(e connstate.Event) bool { taken = append(taken, e); return true })
		_ = c.Push(connstate.Event{Name: "fills the outbox", Data: []byte("{}")})
		quiet, err := c.Drain()
		if err != nil {
			t.Fatal(err)
		}
		go c.Answer("1", []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`), "")
		synctest.Wait() // it waits for room
		select {
		case <-quiet:
			t.Error("quiet while an answer waits for room")
		default:
		}
		c.Written(taken[0].Size())
		<-quiet
		if len(taken) != 2 {
			t.Errorf("%d events were taken, want the answer as well", len(taken))
		}
		if c.AnswerNow("1", []byte("{}"), "") {
			t.Error("answered twice")
		}
	})
}

type nothing struct{}

func (nothing) Receive(*jsonrpc.Message)          {}
func (nothing) Refused(*connstate.Request, error) {}
func (nothing) Closed()                           {}

// The gate is bounded in bytes too: a few large messages are as much as many.
func TestGateIsBoundedInBytes(t *testing.T) {
	r := connstate.NewRegistry(connstate.Limits{}, connstate.Options{})
	c, err := r.Open(connstate.Client{})
	if err != nil {
		t.Fatal(err)
	}
	c.Bind(nothing{})
	defer func() { c.Close("client"); r.Remove(c) }()
	large := func(id string, size int) *jsonrpc.Message {
		pad := bytes.Repeat([]byte("x"), size)
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":"` + id + `","method":"m","params":{"x":"` + string(pad) + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for i, tt := range []struct {
		size int
		want error
	}{{9 << 20, nil}, {1, connstate.ErrGateFull}} {
		if _, err := c.AdmitMessage(large(string(rune('a'+i)), tt.size)); !errors.Is(err, tt.want) {
			t.Errorf("message %d of %d bytes: got %v, want %v", i, tt.size, err, tt.want)
		}
	}
	if !c.WithdrawID(`"a"`) {
		t.Fatal("the large message does not wait")
	}
	for i, tt := range []struct {
		size int
		want error
	}{{5 << 20, nil}, {2 << 20, nil}, {2 << 20, connstate.ErrGateFull}, {100, nil}} {
		if _, err := c.AdmitMessage(large(string(rune('c'+i)), tt.size)); !errors.Is(err, tt.want) {
			t.Errorf("then message %d of %d bytes: got %v, want %v", i, tt.size, err, tt.want)
		}
	}
}
