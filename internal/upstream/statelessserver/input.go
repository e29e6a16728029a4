package statelessserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxAsks bounds the unanswered requests to the client.
const maxAsks = 256

// ask is a request to the client that stands for an input request of the server.
type ask struct {
	id     jsonrpc.ID
	key    string // the server's name for the input request
	method string
	params json.RawMessage // nil: none
	reply  chan *jsonrpc.Message
}

// input asks the client for what the server wants to know, and returns the params of
// the next round: those of the client, the answers, and the server's state.
func (c *Conn) input(
	k *exchange.Call, result json.RawMessage, round int, pause *backoff.Backoff,
) (json.RawMessage, error) {
	if !stateless.AsksInput(k.Method) {
		return nil, exchange.InvalidResponse("it asks for input to %.64s", k.Method)
	}
	if round >= stateless.MaxRounds {
		return nil, exchange.NewError(exchange.ErrorData{Reason: reasonRounds},
			"the server asked for input more than %d times", stateless.MaxRounds)
	}
	params := k.Msg.Params()
	requests, asks := rawjson.Member(result, "inputRequests")
	state, stateful := rawjson.Member(result, "requestState")
	if !asks && !stateful {
		return nil, exchange.InvalidResponse("it asks for input without saying for which")
	}
	if asks && !stateless.IsEmpty(requests) {
		responses, err := c.gather(k, requests)
		if err != nil {
			return nil, err
		}
		params = rawjson.SetMember(params, responses, "inputResponses")
	} else if err := backoff.Wait(k.Ctx, pause.Next()); err != nil { // the server only wants the request again
		return nil, err
	}
	if stateful {
		params = rawjson.SetMember(params, state, "requestState")
	}
	return params, nil
}

// gather sends the input requests to the client, and returns the answers under the
// server's names. If one fails, it cancels the others.
func (c *Conn) gather(k *exchange.Call, requests json.RawMessage) (json.RawMessage, error) {
	asks, err := c.register(requests)
	if err != nil {
		return nil, err
	}
	defer c.withdraw(k, asks)
	for _, a := range asks {
		if err := c.Queue.Push(jsonrpc.NewRequest(a.id, a.method, a.params), k.ID); err != nil {
			return nil, err
		}
	}
	responses := json.RawMessage("{}")
	for _, a := range asks {
		var m *jsonrpc.Message
		select {
		case m = <-a.reply:
		case <-k.Ctx.Done():
			return nil, k.Ctx.Err()
		}
		answer := m.Result()
		if answer == nil && a.method == mcp.MethodElicit {
			answer = json.RawMessage(`{"action":"cancel"}`)
		}
		if answer == nil {
			return nil, stateless.ErrorOf(m.Error()) // which becomes that of the call
		}
		responses = rawjson.SetMember(responses, answer, a.key)
	}
	return responses, nil
}

// register enters the requests to the client for input requests, in the order of their
// names. It fails for one that the client has not declared to answer.
func (c *Conn) register(requests json.RawMessage) (asks []*ask, err error) {
	var byKey map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(requests, &byKey); err != nil {
		return nil, exchange.InvalidResponse("its input requests are not an object")
	}
	if len(byKey) > stateless.MaxInputs {
		return nil, exchange.InvalidResponse("it asks for %d inputs at once, more than %d", len(byKey),
			stateless.MaxInputs)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asks)+len(byKey) > maxAsks {
		return nil, exchange.NewError(exchange.ErrorData{Reason: reasonAsks},
			"over %d requests to the client are unanswered", maxAsks)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		r := byKey[key]
		if !mcp.Answers(c.meta.Capabilities, r.Method, r.Params) {
			return nil, exchange.InvalidResponse("it asks for %.64q, which the client has not declared", r.Method)
		}
		a := &ask{key: key, method: r.Method, params: stateless.RequestParams(r.Method, r.Params),
			reply: make(chan *jsonrpc.Message, 1)}
		c.nextID++
		a.id = jsonrpc.ID(strconv.Quote("input-" + strconv.FormatInt(c.nextID, 10)))
		asks = append(asks, a)
	}
	for _, a := range asks {
		c.asks[a.id] = a
	}
	return asks, nil
}

// withdraw removes the requests, and cancels those that the client has not answered.
func (c *Conn) withdraw(k *exchange.Call, asks []*ask) {
	for _, a := range asks {
		c.mu.Lock()
		open := c.asks[a.id] == a
		delete(c.asks, a.id)
		c.mu.Unlock()
		if open {
			params := json.RawMessage(`{"requestId":` + string(a.id) + `,"reason":"no longer needed"}`)
			// Fails at the end of the session.
			_ = c.Queue.Push(jsonrpc.NewNotification(mcp.MethodCancelled, params), k.ID)
		}
	}
}

func (c *Conn) answered(m *jsonrpc.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return c.closed
	}
	a := c.asks[m.ID]
	if a == nil {
		c.x.Metrics.Dropped(metrics.DroppedUnknownResponse)
		return nil
	}
	delete(c.asks, m.ID)
	a.reply <- m // has room for it
	return nil
}
