package stateless

import (
	"context"
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
	// maxSubscriptions and maxSubscriptionBytes bound the resources that one
	// session is subscribed to.
	maxSubscriptions     = 1024
	maxSubscriptionBytes = 1 << 20
	// ackTimeout is how long a server may take to acknowledge a listen.
	ackTimeout = 10 * time.Second
	// steadyListen is how long a stream of changes must last for the next one to be
	// opened without a growing pause.
	steadyListen = 30 * time.Second
	// The pauses before a stream of changes is opened anew: each drawn at random
	// between zero and twice its mean.
	firstListenPause = 500 * time.Millisecond
	maxListenPause   = 30 * time.Second
)

// listening is how a session learns of changes: one subscriptions/listen, for the
// lists that the server says may change and for all resources that the client has
// subscribed to. Another set needs another listen: it is opened, and once the
// server has acknowledged it the old one is closed, so that nothing is missed.
//
// One goroutine, the worker, does all that. It ends with the session.
type listening struct {
	wake    chan struct{} // has room for one: there are changes
	changes []*call       // subscribe and unsubscribe, in order; guarded by Conn.mu
	on      bool          // there is a worker; guarded by Conn.mu

	// The worker's own.
	lists changeFilter // those that may change
	uris  map[string]bool
	now   *changeStream // nil: there is none
	pause *backoff.Backoff
	again <-chan time.Time // the next try is due; nil: there will be none
	away  bool             // a try has failed since there was a stream
}

// changeFilter says which changes a stream tells.
type changeFilter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

func (f changeFilter) empty() bool {
	return !f.Tools && !f.Prompts && !f.Resources && len(f.URIs) == 0
}

// changingLists returns the lists of which a server says that they may change.
func changingLists(discovered json.RawMessage) changeFilter {
	capabilities, _ := jsonrpc.Member(discovered, "capabilities")
	changes := func(list string) bool { return mcp.Declares(capabilities, list, "listChanged") }
	return changeFilter{Tools: changes("tools"), Prompts: changes("prompts"), Resources: changes("resources")}
}

// startListening starts the worker when the server tells of changes.
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

// subscription has the worker take the changes, which answers k then, and waits
// for that.
func (c *Conn) subscription(k *call) {
	c.mu.Lock()
	c.listenLocked()
	c.mu.Unlock()
	select {
	case c.listening.wake <- struct{}{}:
	default: // it will come anyway
	}
	<-k.Ctx.Done()
}

// settle answers a subscription.
func (c *Conn) settle(k *call, err error) {
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

// streamEnded decides what follows the end of a stream.
func (c *Conn) streamEnded() {
	l := &c.listening
	s := l.now
	l.now = nil
	c.x.Log.Debug("stream of changes ended", "err", s.err)
	if s.honoured.empty() {
		return // the server has nothing to tell
	}
	if time.Since(s.opened) >= steadyListen {
		l.pause.Reset()
	}
	l.again = time.After(l.pause.Next())
}

// relisten opens a stream for what is wanted, and if that fails plans the next
// try.
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
		return // it never will
	}
	c.x.Log.Debug("stream of changes failed", "err", err)
	l.away = true
	l.again = time.After(l.pause.Next())
}

// tellMissed tells the client of all that may have changed while nobody told: the
// server was away, and what it serves now may be something else.
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

// filter is what a stream for these resources asks for.
func (l *listening) filter(uris map[string]bool) changeFilter {
	f := l.lists
	f.URIs = slices.Sorted(maps.Keys(uris))
	return f
}

// applyChanges takes the subscriptions that wait: all at once, and where the
// server refuses that, one by one, so that each gets the answer that is its own.
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
		if err := c.apply([]*call{k}); err != nil {
			c.unsubscribable(k, err)
		}
	}
}

// unsubscribable answers a change that failed. To unsubscribe never fails for the
// client: what still comes it will not want.
func (c *Conn) unsubscribable(k *call, err error) {
	if k.Method == mcp.MethodUnsubscribe {
		delete(c.listening.uris, uriOf(k.m))
		err = nil
	}
	c.settle(k, err)
}

func uriOf(m *jsonrpc.Message) string {
	raw, _ := jsonrpc.Member(m.Params(), "uri")
	uri, _ := jsonrpc.Text(raw)
	return uri
}

// apply makes the changes of a batch, and answers them.
func (c *Conn) apply(batch []*call) error {
	l := &c.listening
	uris := maps.Clone(l.uris)
	size := 0
	for _, k := range batch {
		uri := uriOf(k.m)
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
		if uri := uriOf(k.m); k.Method == mcp.MethodSubscribe && uris[uri] && !slices.Contains(l.now.honoured.URIs, uri) {
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

// changeStream is one subscriptions/listen that the server has acknowledged.
type changeStream struct {
	cancel   context.CancelFunc
	opened   time.Time
	honoured changeFilter      // what the server tells of
	acked    chan changeFilter // has room for one
	done     chan struct{}     // closed at the end
	err      error             // why it ended; nil: in good order. Set before done is closed
}

// openStream opens a stream, and waits until the server acknowledges it.
func (c *Conn) openStream(f changeFilter) (*changeStream, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	s := &changeStream{
		cancel: cancel, opened: time.Now(), acked: make(chan changeFilter, 1), done: make(chan struct{}),
	}
	wanted, err := json.Marshal(f)
	if err != nil { // it has strings only
		return nil, err
	}
	params := jsonrpc.SetMember(json.RawMessage("{}"), wanted, "notifications")
	c.running.Go(func() { // ends with ctx
		defer close(s.done)
		defer cancel()
		s.err = c.readStream(ctx, s, params)
	})
	timer := time.NewTimer(ackTimeout)
	defer timer.Stop()
	select {
	case s.honoured = <-s.acked:
		return s, nil
	case <-s.done:
	case <-timer.C:
		cancel()
		return nil, exchange.NewError(exchange.ErrorData{Reason: reasonUnsubscribed}, "the server does not acknowledge a subscription")
	}
	select { // it may have ended right after that
	case s.honoured = <-s.acked:
		return s, nil
	default:
	}
	if s.err == nil {
		return nil, exchange.NewError(exchange.ErrorData{Reason: reasonUnsubscribed}, "the server ended a subscription at once")
	}
	return nil, s.err
}

// readStream posts a subscriptions/listen and passes on what comes on its
// response.
func (c *Conn) readStream(ctx context.Context, s *changeStream, params json.RawMessage) error {
	acked := false
	m, release, err := c.post(ctx, own(mcp.MethodListen), params, func(n *jsonrpc.Message) error {
		if n.Method == mcp.MethodAcknowledged {
			if !acked {
				acked = true
				s.acked <- acknowledged(n.Params())
			}
			return nil
		}
		return c.inbox.Push(withoutSubscription(n))
	})
	defer release()
	switch {
	case err != nil:
		return err
	case m.Error() != nil:
		return errorFrom(plainError(m.Error()))
	}
	return nil
}

// acknowledged is what the server says it will tell of.
func acknowledged(params json.RawMessage) changeFilter {
	var f changeFilter
	member, _ := jsonrpc.Member(params, "notifications")
	_ = json.Unmarshal(member, &f) // what has another form promises nothing
	return f
}

// withoutSubscription returns a notification without the mark of its stream.
func withoutSubscription(n *jsonrpc.Message) []byte {
	meta, ok := jsonrpc.Member(n.Params(), "_meta")
	if !ok {
		return n.Raw()
	}
	meta = jsonrpc.RemoveMember(meta, metaSubscription)
	return jsonrpc.ReplaceMember(n.Raw(), meta, "params", "_meta")
}
