package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// message is a JSON-RPC message.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// handleEvent handles an event of the response to the POST of a call; on is nil for an
// event of the client's own stream.
func (c *client) handleEvent(e event, on *call) {
	at := time.Now()
	if c.run.opts.Transport != SSE && e.name != "" && e.name != "message" {
		c.run.tally.countFault(Malformed, "client %d got an event named %.100q: %.200s", c.number, e.name, e.data)
		return
	}
	if e.name == "endpoint" {
		c.run.tally.countFault(Malformed, "client %d got a second endpoint: %.200s", c.number, e.data)
		return
	}
	var m message
	if err := json.Unmarshal(e.data, &m); err != nil || m.Version != "2.0" {
		c.run.tally.countFault(Malformed, "client %d got no JSON-RPC message: %.200q", c.number, e.data)
		return
	}
	switch {
	case m.Method != "" && len(m.ID) > 0:
		c.handleRequest(m, e, on)
	case m.Method == "notifications/progress":
		c.handleProgress(m, e, on)
	case m.Method != "":
		c.run.tally.count(func(r *Report) *int64 { return &r.Notifications })
		c.checkOwn(e.data, "the notification "+m.Method)
	default:
		c.handleResponse(m, e, on, at)
	}
}

// handleResponse passes an answer to its call.
func (c *client) handleResponse(m message, e event, on *call, at time.Time) {
	id, numeric := parseNumber(m.ID)
	var k *call
	first := false
	if numeric {
		k, first = c.noteAnswer(id, e)
	}
	if k != nil {
		c.checkPlace(k, on, "an answer to")
	}
	switch {
	case !numeric && e.name == "mcp-response" && bytes.HasPrefix(m.ID, []byte(`"`)):
		// The result of an initialize that the server has sent to itself.
		c.run.tally.count(func(r *Report) *int64 { return &r.Announcements })
		c.checkOwn(e.data, "an announcement")
	case k == nil:
		c.run.tally.countFault(Unknown, "client %d got an answer to id %.100s, which it has not used", c.number, m.ID)
		c.checkOwn(e.data, "an unknown answer")
	case first:
		a := refusalOrResult(m)
		a.at = at
		a.wrong = !c.check(k, e.data, k.marked && a.result != nil, "the answer to")
		k.done <- a
	default:
		c.check(k, e.data, k.marked && m.Error == nil, "another answer to")
	}
}

// parseNumber parses an id or a token. All that this package sends are numbers.
func parseNumber(raw json.RawMessage) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// noteAnswer notes that an answer came, and reports whether it ends its call. It
// counts a duplicate or late answer as a fault.
func (c *client) noteAnswer(id int64, e event) (k *call, first bool) {
	c.mu.Lock()
	k = c.calls[id]
	if k == nil {
		c.mu.Unlock()
		return nil, false
	}
	name := asMessage
	if e.name == "mcp-response" {
		name = asResponse
	}
	again := k.names&name != 0 || k.names != 0 && !c.run.opts.NoInitialize
	late := k.state == abandoned && k.names == 0
	first = k.state == waiting
	k.names |= name
	if first {
		k.state = answered
	}
	c.mu.Unlock()
	if again {
		c.run.tally.countFault(Duplicated, "client %d got another answer to id %d", c.number, id)
	}
	if late {
		c.run.tally.countFault(Late, "client %d got the answer to id %d after it had given up", c.number, id)
	}
	return k, first
}

// refusalOrResult returns the answer in a response. A result with isError is a
// refusal.
func refusalOrResult(m message) answer {
	if m.Result == nil {
		return answer{refusal: string(m.Error)}
	}
	var result struct {
		IsError bool `json:"isError"`
	}
	if json.Unmarshal(m.Result, &result) != nil || result.IsError {
		return answer{refusal: string(m.Result)}
	}
	return answer{result: m.Result}
}

// handleProgress checks that a progress notification is for a call in flight.
func (c *client) handleProgress(m message, e event, on *call) {
	var params progress
	err := json.Unmarshal(m.Params, &params)
	if params.ofStart() {
		c.run.tally.count(func(r *Report) *int64 { return &r.Starting })
	} else {
		c.run.tally.count(func(r *Report) *int64 { return &r.Progress })
	}
	if err != nil {
		c.run.tally.countFault(Malformed, "client %d got progress that is none: %.200s", c.number, m.Params)
		return
	}
	var (
		k *call
		s state
	)
	if id, ok := parseNumber(params.ProgressToken); ok {
		k, s = c.find(id)
	}
	switch {
	case k == nil:
		c.run.tally.countFault(StrayProgress, "client %d got progress for the token %.100s, which it has not given",
			c.number, params.ProgressToken)
		c.checkOwn(e.data, "progress")
		return
	case s == answered: // not abandoned: of that the server could not know
		c.run.tally.countFault(StrayProgress, "client %d got progress for id %d after the end of that call", c.number,
			k.id)
	}
	c.checkPlace(k, on, "progress of")
	c.check(k, e.data, k.reports && params.Message != "" && !params.ofStart(), "progress of")
}

// progress is the params of a progress notification.
type progress struct {
	ProgressToken json.RawMessage `json:"progressToken"`
	Progress      float64         `json:"progress"`
	Message       string          `json:"message"`
}

// ofStart reports whether the gateway says by this progress that a call waits for the start of its server.
func (p progress) ofStart() bool { return p.Progress < 0 && p.Message == "starting the server" }

// handleRequest answers a request of the server. The client serves only ping.
func (c *client) handleRequest(m message, e event, on *call) {
	c.run.tally.count(func(r *Report) *int64 { return &r.Requests })
	c.checkOwn(e.data, "the request "+m.Method)
	if c.run.opts.InFlight == 1 { // otherwise a server on stdio does not say with which call it comes
		for secret := range secrets(e.data) {
			if k := c.run.register.caller(secret); k != nil && k.client == c {
				c.checkPlace(k, on, "a request with the secret of")
			}
		}
	}
	reply := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
	if m.Method == "ping" {
		reply = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	select {
	case c.requests <- reply:
	default: // a server that asks faster than it takes answers gets none
	}
}

// check reports whether text, which belongs to a call, holds no other secret than
// the call's and, if it must, that one. It counts what is wrong.
func (c *client) check(k *call, text []byte, must bool, what string) bool {
	held, right := false, true
	for secret := range secrets(text) {
		if string(secret) == k.secret {
			held = true
			continue
		}
		right = false
		c.reportCrossed(secret, fmt.Sprintf("%s id %d", what, k.id))
	}
	switch {
	case !must || !right:
	case !held:
		right = false
		c.run.tally.countFault(Unmarked, "client %d got %s id %d without the secret: %.300s", c.number, what, k.id,
			text)
	case len(text) < len(c.run.padding):
		right = false
		c.run.tally.countFault(Unmarked, "client %d got %s id %d in %d bytes, less than it has sent", c.number, what,
			k.id, len(text))
	}
	return right
}

// checkOwn checks a text that belongs to the client, but to none of its calls.
func (c *client) checkOwn(text []byte, what string) {
	for secret := range secrets(text) {
		if k := c.run.register.caller(secret); k == nil || k.client != c {
			c.reportCrossed(secret, what)
		}
	}
}

func (c *client) reportCrossed(secret []byte, what string) {
	from := "of nobody in this run"
	if k := c.run.register.caller(secret); k != nil {
		from = fmt.Sprintf("of client %d, id %d", k.client.number, k.id)
	}
	c.run.tally.countFault(Crossed, "client %d got %s with the secret %s", c.number, what, from)
}
