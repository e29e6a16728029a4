package stateless

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// ackTimeout is how long a server may take to acknowledge a subscriptions/listen.
const ackTimeout = 10 * time.Second

// changeFilter says which changes a stream reports.
type changeFilter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

func (f changeFilter) empty() bool {
	return !f.Tools && !f.Prompts && !f.Resources && len(f.URIs) == 0
}

// changingLists returns the lists that may change, as the server declares.
func changingLists(discovered json.RawMessage) changeFilter {
	capabilities, _ := jsonrpc.Member(discovered, "capabilities")
	changes := func(list string) bool { return mcp.Declares(capabilities, list, "listChanged") }
	return changeFilter{Tools: changes("tools"), Prompts: changes("prompts"), Resources: changes("resources")}
}

// changeStream is one subscriptions/listen that the server has acknowledged.
type changeStream struct {
	cancel   context.CancelFunc
	opened   time.Time
	honoured changeFilter  // what the server reports
	done     chan struct{} // closed at the end
	err      error         // why the stream ended; nil: the server ended it. Set before done is closed
}

// openStream opens a stream, and waits until the server acknowledges it.
func (c *Conn) openStream(f changeFilter) (*changeStream, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	s := &changeStream{cancel: cancel, opened: time.Now(), done: make(chan struct{})}
	acked := make(chan changeFilter, 1)
	c.running.Go(func() { // ends with ctx
		defer close(s.done)
		defer cancel()
		s.err = c.readStream(ctx, f, acked)
	})
	select {
	case honoured, ok := <-acked:
		if ok {
			s.honoured = honoured
			return s, nil
		}
	case <-time.After(ackTimeout):
		cancel()
		return nil, exchange.NewError(exchange.ErrorData{Reason: reasonUnsubscribed}, "the server does not acknowledge a subscription")
	}
	<-s.done
	if s.err == nil {
		return nil, exchange.NewError(exchange.ErrorData{Reason: reasonUnsubscribed}, "the server ended a subscription at once")
	}
	return nil, s.err
}

// readStream posts a subscriptions/listen and passes on the notifications on its
// response, until that ends. It sends the first acknowledgement to acked, and closes
// acked at the end.
func (c *Conn) readStream(ctx context.Context, f changeFilter, acked chan<- changeFilter) error {
	defer close(acked)
	wanted, err := json.Marshal(f)
	if err != nil { // strings always have a JSON form
		return err
	}
	first := true
	m, release, err := c.post(ctx, own(mcp.MethodListen), jsonrpc.SetMember(json.RawMessage("{}"), wanted, "notifications"), func(n *jsonrpc.Message) error {
		switch {
		case n.Method != mcp.MethodAcknowledged:
			return c.inbox.Push(withoutSubscription(n))
		case first:
			first = false
			acked <- acknowledged(n.Params(), f)
		}
		return nil
	})
	defer release()
	switch {
	case err != nil:
		return err
	case m.Error() == nil:
		return nil
	}
	if e := translateError(m); e != nil {
		return e
	}
	return errorFrom(m)
}

// acknowledged returns what the server says that it will report. Resources that
// nobody asked for do not count: there may be very many.
func acknowledged(params json.RawMessage, wanted changeFilter) changeFilter {
	var f changeFilter
	member, _ := jsonrpc.Member(params, "notifications")
	_ = json.Unmarshal(member, &f) // another form promises nothing
	said := make(map[string]bool, len(f.URIs))
	for _, uri := range f.URIs {
		said[uri] = true
	}
	f.URIs = slices.DeleteFunc(slices.Clone(wanted.URIs), func(uri string) bool { return !said[uri] })
	return f
}

// withoutSubscription returns a notification without the mark of its stream.
func withoutSubscription(n *jsonrpc.Message) []byte {
	meta, ok := jsonrpc.Member(n.Params(), "_meta")
	if !ok {
		return n.Raw()
	}
	meta = jsonrpc.RemoveMember(meta, mcp.MetaSubscription)
	return jsonrpc.ReplaceMember(n.Raw(), meta, "params", "_meta")
}
