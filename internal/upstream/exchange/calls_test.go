package exchange

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func message(t *testing.T, text string) *jsonrpc.Message {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(text))
	ssetest.Must(t, err)
	return m
}

func request(t *testing.T, id int) *jsonrpc.Message {
	t.Helper()
	return message(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, id))
}

func begin(t *testing.T, c *Calls, m *jsonrpc.Message) *Call {
	t.Helper()
	k, err := c.Begin(t.Context(), m)
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return k
}

func TestCallIsAnsweredOnce(t *testing.T) {
	var c Calls
	k := begin(t, &c, request(t, 1))
	if _, err := c.Begin(t.Context(), request(t, 1)); err == nil || errors.Is(err, jsonrpc.ErrBusy) {
		t.Errorf("a second request with the id: %v", err)
	}
	if c.Open("1") != k || !c.Answer(k) || c.Answer(k) || c.Open("1") != nil {
		t.Error("the request is not answered once")
	}
	second := begin(t, &c, request(t, 1)) // the id is free before the first is finished
	c.Finish(k)
	if c.Open("1") != second || !c.Answer(second) {
		t.Error("the end of the first call took the second along")
	}
	c.Finish(second)
	if second.Ctx.Err() == nil || c.bytes != 0 || len(c.open) != 0 {
		t.Errorf("finished calls leave %+v", c)
	}
}

func TestCallsAreBoundedInNumber(t *testing.T) {
	var c Calls
	first := begin(t, &c, request(t, -1))
	for i := range maxCalls - 1 {
		begin(t, &c, request(t, i))
	}
	_, err := c.Begin(t.Context(), request(t, maxCalls))
	ssetest.WantError(t, "one over the limit", err, jsonrpc.ErrBusy)
	c.Finish(first)
	begin(t, &c, request(t, maxCalls))
}

func TestCallsAreBoundedInBytesUntilTheyAreFinished(t *testing.T) {
	var c Calls
	large := message(t, `{"jsonrpc":"2.0","id":"x","method":"m","params":["`+strings.Repeat("m", buffer.SendLimit)+`"]}`)
	k := begin(t, &c, large) // alone it passes
	c.Answer(k)
	_, err := c.Begin(t.Context(), request(t, 1))
	ssetest.WantError(t, "beside a call over the limit", err, jsonrpc.ErrBusy)
	c.Finish(k)
	begin(t, &c, request(t, 1))
}
