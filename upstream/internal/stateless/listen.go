package stateless

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

const (
	// maxSubscriptions and maxSubscriptionBytes bound the resources that a session is
	// subscribed to, and the length of their URIs.
	maxSubscriptions     = 1024
	maxSubscriptionBytes = 1 << 20
	// steadyListen is how long a stream of changes must last for the pauses to start
	// over.
	steadyListen = 30 * time.Second
	// The pauses before a stream of changes is opened again double from the first to
	// the last. Each is drawn at random between zero and twice its mean.
	firstListenPause = 500 * time.Millisecond
	maxListenPause   = 30 * time.Second
)

// listening is how a session learns of changes: by one subscriptions/listen, for the
// lists that may change and for the resources that the client has subscribed to. For
// another set the worker opens another stream, and closes the old one after the
// server has acknowledged the new one, so that no change is missed.
//
// One goroutine, the worker, does this. It ends with the session.
type listening struct {
	wake    chan struct{}    // has room for one: there are changes
	changes []*exchange.Call // subscribe and unsubscribe, in order; guarded by Conn.mu
	on      bool             // there is a worker; guarded by Conn.mu

	// The worker owns the fields below.
	lists changeFilter // the lists that may change
	uris  map[string]bool
	now   *changeStream // nil: no stream is open
	pause *backoff.Backoff
	again <-chan time.Time // when the next attempt is due; nil: never
	away  bool             // an attempt has failed since the last stream
}

// startListening starts the worker if the server reports changes of lists.
func (c *Conn) startListening() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == nil && !changingLists(c.discovered).empty() {
		c.listenLocked()
	}
	return c.closed
}

// listenLocked starts the worker once.
func (c *Conn) listenLocked() {
	if c.listening.on {
		return
	}
	c.listening.on = true
	c.listening.lists = changingLists(c.discovered)
	c.running.Go(c.listen)
}

// subscription wakes the worker, which answers k, and waits until it has.
func (c *Conn) subscription(k *exchange.Call) {
	c.mu.Lock()
	c.listenLocked()
	c.mu.Unlock()
	select {
	case c.listening.wake <- struct{}{}:
	default: // it is awake already
	}
	<-k.Ctx.Done()
}

// settle answers a subscription.
func (c *Conn) settle(k *exchange.Call, err error) {
	if err != nil {
		c.failed(k, err)
	} else {
		c.result(k, json.RawMessage("{}"))
	}
	k.Cancel()
}

// listen is the worker.
func (c *Conn) listen() {
	l := &c.listening
	l.uris = make(map[string]bool)
	l.pause = backoff.New(firstListenPause, maxListenPause)
	if !l.lists.empty() {
		c.relisten()
	}
	for {
		var ended <-chan struct{}
		if l.now != nil {
			ended = l.now.done
		}
		select {
		case <-c.ctx.Done():
			return
		case <-l.wake:
			c.applyChanges()
		case <-ended:
			c.streamEnded()
		case <-l.again:
			c.relisten()
		}
	}
}

// streamEnded plans the next stream after the end of one.
func (c *Conn) streamEnded() {
	l := &c.listening
	s := l.now
	l.now = nil
	c.x.Log.Debug("stream of changes ended", "err", s.err)
	if s.honoured.empty() {
		return // the server reports no changes
	}
	if time.Since(s.opened) >= steadyListen {
		l.pause.Reset()
	}
	l.again = time.After(l.pause.Next())
}

// relisten opens a stream for the current set. If that fails, it plans the next
// attempt.
func (c *Conn) relisten() {
	l := &c.listening
	err := c.replace(l.filter(l.uris))
	if err == nil {
		if l.away {
			l.away = false
			c.tellMissed()
		}
		return
	}
	l.again = nil
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeMethodNotFound {
		c.x.Log.Debug("stream of changes refused", "err", err)
		return // the server has no such method
	}
	c.x.Log.Debug("stream of changes failed", "err", err)
	l.away = true
	l.again = time.After(l.pause.Next())
}

// tellMissed reports everything that may have changed while the server was away: it
// may serve something else now.
func (c *Conn) tellMissed() {
	tell := func(method string, params json.RawMessage) {
		_ = c.inbox.Push(jsonrpc.NewNotification(method, params)) // fails at the end of the session
	}
	f := c.listening.now.honoured
	if f.Tools {
		tell(mcp.MethodToolsChanged, nil)
	}
	if f.Prompts {
		tell(mcp.MethodPromptsChanged, nil)
	}
	if f.Resources {
		tell(mcp.MethodResourcesChanged, nil)
	}
	for _, uri := range f.URIs {
		raw, _ := json.Marshal(uri) // a string always has a JSON form
		tell(mcp.MethodResourceUpdated, jsonrpc.SetMember(json.RawMessage("{}"), raw, "uri"))
	}
}

// filter returns what a stream for these resources asks for.
func (l *listening) filter(uris map[string]bool) changeFilter {
	f := l.lists
	f.URIs = slices.Sorted(maps.Keys(uris))
	return f
}

// applyChanges applies the waiting subscriptions: all at once, or one by one if the
// server refuses that, so that each gets its own answer.
func (c *Conn) applyChanges() {
	c.mu.Lock()
	batch := c.listening.changes
	c.listening.changes = nil
	c.mu.Unlock()
	err := c.apply(batch)
	if err == nil {
		return
	}
	if len(batch) == 1 {
		c.unsubscribable(batch[0], err)
		return
	}
	for _, k := range batch {
		if err := c.apply([]*exchange.Call{k}); err != nil {
			c.unsubscribable(k, err)
		}
	}
}

// unsubscribable answers a change that failed. Unsubscribing never fails for the
// client, which ignores what still comes.
func (c *Conn) unsubscribable(k *exchange.Call, err error) {
	if k.Method == mcp.MethodUnsubscribe {
		delete(c.listening.uris, uriOf(k.Msg))
		err = nil
	}
	c.settle(k, err)
}

func uriOf(m *jsonrpc.Message) string {
	raw, _ := jsonrpc.Member(m.Params(), "uri")
	uri, _ := jsonrpc.Text(raw)
	return uri
}

// apply applies the changes of a batch, and answers them.
func (c *Conn) apply(batch []*exchange.Call) error {
	l := &c.listening
	uris := maps.Clone(l.uris)
	size := 0
	for _, k := range batch {
		uri := uriOf(k.Msg)
		switch {
		case uri == "":
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be a string")
		case k.Method == mcp.MethodUnsubscribe:
			delete(uris, uri)
		default:
			uris[uri] = true
		}
	}
	for uri := range uris {
		size += len(uri)
	}
	if len(uris) > maxSubscriptions || size > maxSubscriptionBytes {
		return exchange.NewError(exchange.ErrorData{Reason: reasonSubscriptions}, "too many resources are subscribed to")
	}
	if l.now == nil || !maps.Equal(uris, l.uris) {
		if err := c.replace(l.filter(uris)); err != nil {
			return err
		}
	}
	l.uris = uris
	for _, k := range batch {
		if uri := uriOf(k.Msg); k.Method == mcp.MethodSubscribe && uris[uri] && !slices.Contains(l.now.honoured.URIs, uri) {
			delete(uris, uri)
			c.settle(k, exchange.NewError(exchange.ErrorData{Reason: reasonUnsubscribed}, "the server does not tell of changes of this resource"))
			continue
		}
		c.settle(k, nil)
	}
	return nil
}

// replace opens a stream of changes and closes the one that was open.
func (c *Conn) replace(f changeFilter) error {
	l := &c.listening
	var next *changeStream
	if !f.empty() {
		var err error
		if next, err = c.openStream(f); err != nil {
			return err
		}
	}
	if l.now != nil {
		l.now.cancel()
	}
	l.now, l.again = next, nil
	return nil
}
