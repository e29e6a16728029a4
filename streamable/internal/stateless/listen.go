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
	honoured := l.subscribe(a.r.Context(), s, wanted)
	defer l.unsubscribe(s)
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
		if l.subscribeTo(ctx, s, uri) {
			got.URIs = append(got.URIs, uri)
		}
	}
	return got
}

// subscribeTo subscribes a listener to a resource, and reports whether that worked. Only
// the first subscriber to a resource needs the server.
func (l *link) subscribeTo(ctx context.Context, s *listener, uri string) bool {
	select {
	case l.subLock <- struct{}{}: // so that the end of an earlier subscription cannot overtake this one
		defer func() { <-l.subLock }()
	case <-ctx.Done():
		return false
	}
	l.mu.Lock()
	subscribed, err := l.resources.Subscribe(uri, s)
	l.mu.Unlock()
	if subscribed || err != nil {
		return subscribed
	}
	m, err := l.ask(ctx, mcp.MethodSubscribe, uriParams(uri))
	if err != nil || m.Result() == nil {
		return false
	}
	l.mu.Lock()
	l.resources.Add(uri, s)
	l.mu.Unlock()
	return true
}

func uriParams(uri string) json.RawMessage {
	params, _ := json.Marshal(map[string]string{"uri": uri}) // strings always have a JSON form
	return params
}

// unsubscribe removes a listener, and ends its subscriptions at the server.
func (l *link) unsubscribe(s *listener) {
	l.subLock <- struct{}{} // held for one request of the handler's at a time, which ends
	defer func() { <-l.subLock }()
	l.mu.Lock()
	delete(l.listeners, s)
	l.hold(&s.queued, -s.queued)
	uris := l.resources.Leave(s)
	l.mu.Unlock()
	for _, uri := range uris {
		if _, err := l.ask(context.Background(), mcp.MethodUnsubscribe, uriParams(uri)); err != nil {
			return // the connection is over
		}
	}
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
