package stateless

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// filter is what a subscriptions/listen asks for, or what it gets.
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// wants reports whether the filter has notifications with that method.
func (f *filter) wants(method string) bool {
	switch method {
	case mcp.MethodToolsChanged:
		return f.Tools
	case mcp.MethodPromptsChanged:
		return f.Prompts
	case mcp.MethodResourcesChanged:
		return f.Resources
	}
	return false
}

// listener is the stream of one subscriptions/listen. Guarded by link.mu, but for the
// fields above it.
type listener struct {
	id      json.RawMessage // of the request
	changed chan struct{}   // has room for one: there is something to take

	lists  filter
	notes  [][]byte
	queued int
	over   bool // the connection is closed, or the client too slow
}

func (s *listener) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// end ends the stream. The caller holds link.mu.
func (s *listener) end() {
	s.over = true
	s.signal()
}

// mark returns a notification that names the subscription.
func (s *listener) mark(m *jsonrpc.Message) []byte {
	params := m.Params()
	if params == nil || params[0] != '{' {
		params = json.RawMessage("{}")
	}
	meta, ok := jsonrpc.Member(params, "_meta")
	if !ok || meta[0] != '{' {
		meta = json.RawMessage("{}")
	}
	meta = jsonrpc.SetMember(meta, s.id, mcp.MetaSubscription)
	return jsonrpc.NewNotification(m.Method, jsonrpc.SetMember(params, meta, "_meta"))
}

// listen serves subscriptions/listen: a stream of the changes that the client asks for,
// as long as the connection lasts.
func (h *Handler) listen(a *reply, q *request) *front.Refusal {
	wanted, why := wantedChanges(q)
	if why != nil {
		return why
	}
	if !front.CanFlush(a.w) {
		return refused(http.StatusInternalServerError, jsonrpc.ReasonError("streaming is not possible here", "no_stream", false))
	}
	l, why := h.connect(a, q, false)
	if l == nil {
		return why
	}
	defer h.pool.release(l, false)
	s := &listener{id: json.RawMessage(q.ID), changed: make(chan struct{}, 1)}
	honoured := l.subscribeWith(a, s, wanted)
	defer l.unsubscribe(s, honoured.URIs)
	params, _ := json.Marshal(map[string]any{"notifications": honoured}) // strings always have a JSON form
	ack, err := jsonrpc.Parse(jsonrpc.NewNotification(mcp.MethodAcknowledged, params))
	if err != nil {
		return refused(http.StatusInternalServerError, errEnded)
	}
	a.event(s.mark(ack))
	a.flush()
	l.relay(a, s)
	return nil
}

// wantedChanges reads the params of a subscriptions/listen.
func wantedChanges(q *request) (f filter, why *front.Refusal) {
	raw, ok := jsonrpc.Member(q.Params(), "notifications")
	if !ok || raw[0] != '{' || json.Unmarshal(raw, &f) != nil {
		return f, invalidParams("params.notifications must be an object that says what to listen for")
	}
	slices.Sort(f.URIs)
	f.URIs = slices.Compact(f.URIs)
	return f, nil
}

// relay writes the changes until the client goes or the connection ends.
func (l *link) relay(a *reply, s *listener) {
	beats, stop := a.beats()
	defer stop()
	for !a.over() {
		l.mu.Lock()
		notes, over := s.notes, s.over
		s.notes = nil
		l.hold(&s.queued, -s.queued)
		l.mu.Unlock()
		for _, n := range notes {
			a.event(n)
		}
		if over {
			meta := jsonrpc.SetMember(json.RawMessage("{}"), s.id, mcp.MetaSubscription)
			a.result(l.complete(mcp.MethodListen, jsonrpc.SetMember(json.RawMessage("{}"), meta, "_meta")))
			return
		}
		a.flush()
		select {
		case <-s.changed:
		case <-beats:
			a.beat()
		case <-a.r.Context().Done():
		}
	}
}

// subscribeWith is subscribe, with heartbeats for the client that waits for it.
func (l *link) subscribeWith(a *reply, s *listener, wanted filter) (got filter) {
	ctx, cancel := context.WithCancel(a.r.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		got = l.subscribe(ctx, s, wanted)
	}()
	if !a.await(done) {
		cancel()
		<-done
	}
	return got
}

// subscribe enters a listener, and returns what it gets of what it wants: what the server
// has declared, and the resources that the server lets the connection subscribe to.
func (l *link) subscribe(ctx context.Context, s *listener, wanted filter) filter {
	declares := func(names ...string) bool {
		return mcp.Declares(l.result, append([]string{"capabilities"}, names...)...)
	}
	got := filter{
		Tools:     wanted.Tools && declares("tools", "listChanged"),
		Prompts:   wanted.Prompts && declares("prompts", "listChanged"),
		Resources: wanted.Resources && declares("resources", "listChanged"),
	}
	l.mu.Lock()
	s.lists = got
	if l.listeners == nil {
		l.listeners = make(map[*listener]struct{})
	}
	l.listeners[s] = struct{}{}
	s.over = l.over
	l.mu.Unlock()
	if !declares("resources", "subscribe") {
		return got
	}
	for _, uri := range wanted.URIs {
		ok, err := l.subscribeTo(ctx, s, uri)
		if ok {
			got.URIs = append(got.URIs, uri)
		}
		if err != nil { // nobody waits, or the server does not answer
			break
		}
	}
	return got
}

// turn waits until no other request about a resource is under way, so that none can
// overtake another. The caller must call done after its own.
func (l *link) turn(ctx context.Context, uri string) (done func(), err error) {
	for {
		l.mu.Lock()
		other := l.turns[uri]
		if other == nil {
			own := make(chan struct{})
			l.turns[uri] = own
			l.mu.Unlock()
			return func() { l.endTurn(uri, own) }, nil
		}
		l.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *link) endTurn(uri string, own chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.turns, uri)
	close(own)
}

// subscribeTo subscribes a listener to a resource, and reports whether that worked. Only
// the first subscriber to a resource needs the server. It fails if the server does not
// answer within askTime.
func (l *link) subscribeTo(ctx context.Context, s *listener, uri string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	done, err := l.turn(ctx, uri)
	if err != nil {
		return false, err
	}
	defer done()
	l.mu.Lock()
	subscribed, full := l.resources.Subscribe(uri, s)
	l.mu.Unlock()
	if subscribed || full != nil {
		return subscribed, nil
	}
	m, err := l.ask(ctx, mcp.MethodSubscribe, uriParams(uri))
	if err != nil || m.Result() == nil {
		return false, err
	}
	l.mu.Lock()
	l.resources.Add(uri, s)
	l.mu.Unlock()
	return true, nil
}

func uriParams(uri string) json.RawMessage {
	params, _ := json.Marshal(map[string]string{"uri": uri}) // strings always have a JSON form
	return params
}

// unsubscribe removes a listener, and ends its subscriptions, which are to these
// resources, at the server. A server that does not answer is not told of the others.
func (l *link) unsubscribe(s *listener, uris []string) {
	l.mu.Lock()
	delete(l.listeners, s)
	l.hold(&s.queued, -s.queued)
	l.mu.Unlock()
	for _, uri := range uris {
		if l.unsubscribeFrom(s, uri) != nil {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resources.Leave(s)
}

// unsubscribeFrom ends a subscription of a listener. Only the last subscriber to a
// resource needs the server. It fails like subscribeTo.
func (l *link) unsubscribeFrom(s *listener, uri string) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTime) // its client is gone
	defer cancel()
	done, err := l.turn(ctx, uri)
	if err != nil {
		return err
	}
	defer done()
	l.mu.Lock()
	last := l.resources.Unsubscribe(uri, s)
	l.mu.Unlock()
	if !last {
		return nil
	}
	_, err = l.ask(ctx, mcp.MethodUnsubscribe, uriParams(uri))
	return err
}

// changed passes what has changed to the listeners that want to know.
func (l *link) changed(m *jsonrpc.Message) {
	if m.Method == mcp.MethodToolsChanged {
		l.group.tools.forget()
	}
	raw, _ := jsonrpc.Member(m.Params(), "uri")
	uri, _ := jsonrpc.Text(raw)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Method == mcp.MethodResourceUpdated {
		for _, s := range l.resources.Updated(uri) {
			l.tellLocked(s, m)
		}
		return
	}
	for s := range l.listeners {
		if s.lists.wants(m.Method) {
			l.tellLocked(s, m)
		}
	}
}

// tellLocked queues a notification for a listener. It ends the stream of one that does not
// read: it would miss a change, and listening again shows it what it has missed.
func (l *link) tellLocked(s *listener, m *jsonrpc.Message) {
	if _, ok := l.listeners[s]; !ok {
		return // it is gone, but for its subscriptions
	}
	note := s.mark(m)
	if s.queued > 0 && s.queued+len(note) > maxQueued {
		l.h.opts.Metrics.Dropped(metrics.DroppedUndelivered)
		s.end()
		return
	}
	s.notes = append(s.notes, note)
	l.hold(&s.queued, len(note))
	s.signal()
}
