package statelessserver

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxSubscriptions bounds the resources that a session is subscribed to, each of which
	// takes a response of the server.
	maxSubscriptions = 256
	// ackTimeout is how long a server may take to acknowledge a subscriptions/listen.
	ackTimeout = 10 * time.Second
	// steadyListen is how long a stream of changes must last for the pauses to start
	// over.
	steadyListen = 30 * time.Second
	// The pauses before a stream of changes is opened again double from the first to
	// the last. Each is drawn at random between zero and twice its mean.
	firstListenPause = 500 * time.Millisecond
	maxListenPause   = 30 * time.Second
)

// changes is a subscriptions/listen: one for the lists that may change, and one for each
// resource that the client subscribes to. It is opened again when it ends.
type changes struct {
	filter  stateless.Filter
	cancel  context.CancelFunc
	decided chan struct{} // closed when the server has acknowledged or refused it
	err     error         // why the server has refused it; set before decided is closed
}

// subscribeLocked follows the changes of a resource, and returns what answers the
// subscription.
func (c *Conn) subscribeLocked(uri string) func(*exchange.Call) {
	s := c.resources[uri]
	var refusal *jsonrpc.Error
	switch {
	case s != nil:
	case uri == "":
		refusal = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be a string")
	case len(c.resources) >= maxSubscriptions:
		refusal = exchange.NewError(exchange.ErrorData{Reason: reasonSubscriptions},
			"too many resources are subscribed to")
	default:
		s = c.followLocked(stateless.Filter{URIs: []string{uri}})
		c.resources[uri] = s
	}
	return func(k *exchange.Call) {
		if refusal != nil {
			c.fail(k, refusal)
			return
		}
		select {
		case <-s.decided:
		case <-k.Ctx.Done():
			return
		}
		if s.err != nil {
			c.failed(k, s.err)
			return
		}
		c.result(k, json.RawMessage("{}"))
	}
}

func (c *Conn) followLocked(f stateless.Filter) *changes {
	ctx, cancel := context.WithCancel(c.ctx)
	s := &changes{filter: f, cancel: cancel, decided: make(chan struct{})}
	c.running.Go(func() { // ends with ctx
		defer cancel()
		c.follow(ctx, s)
	})
	return s
}

var errUnsubscribed = exchange.NewError(exchange.ErrorData{Reason: reasonUnsubscribed},
	"the server does not tell of changes of this")

// follow opens the stream, and again whenever it ends, until ctx ends or the server reports
// no such changes. A subscription to a resource ends when its first attempt fails.
func (c *Conn) follow(ctx context.Context, s *changes) {
	pause := backoff.New(firstListenPause, maxListenPause)
	accepted, again := false, false
	for {
		var opened time.Time
		err := c.listen(ctx, s.filter, func(honoured stateless.Filter) error {
			opened = time.Now()
			honoured = honoured.And(s.filter)
			if honoured.IsEmpty() {
				return errUnsubscribed
			}
			if !accepted {
				close(s.decided)
			}
			if again { // no stream was there to tell of a change
				c.tellMissed(honoured)
			}
			accepted = true
			return nil
		})
		e, _ := errors.AsType[*jsonrpc.Error](err)
		if ctx.Err() != nil || e != nil && (e == errUnsubscribed || e.Code == jsonrpc.CodeMethodNotFound) ||
			!accepted && len(s.filter.URIs) > 0 {
			if ctx.Err() == nil && !accepted {
				s.err = err
			}
			break
		}
		c.x.Log.Debug("stream of changes ended", "err", err)
		again = true
		if !opened.IsZero() && time.Since(opened) >= steadyListen {
			pause.Reset()
		}
		if backoff.Wait(ctx, pause.Next()) != nil {
			break
		}
	}
	c.mu.Lock()
	maps.DeleteFunc(c.resources, func(_ string, other *changes) bool { return other == s })
	c.mu.Unlock()
	if !accepted {
		close(s.decided)
	}
}

// tellMissed reports everything that may have changed while there was no stream.
func (c *Conn) tellMissed(f stateless.Filter) {
	for _, method := range f.Lists() {
		_ = c.Queue.Push(jsonrpc.NewNotification(method, nil), "") // fails at the end of the session
	}
	for _, uri := range f.URIs {
		_ = c.Queue.Push(jsonrpc.NewNotification(mcp.MethodResourceUpdated, stateless.URIParams(uri)), "")
	}
}

// listen posts a subscriptions/listen and passes on the notifications on its response,
// until that ends. It calls acknowledged, whose error ends it, when the server has said what
// it reports.
func (c *Conn) listen(ctx context.Context, f stateless.Filter, acknowledged func(stateless.Filter) error) error {
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(ackTimeout, cancel)
	defer timer.Stop()
	acked := false
	m, err := c.post(attempt, ownRequest(mcp.MethodListen), f.Params(), func(n *jsonrpc.Message) error {
		switch {
		case n.Method != mcp.MethodAcknowledged:
			return c.Queue.Push(stateless.Unmark(n), "")
		case !acked:
			acked = true
			timer.Stop()
			honoured, _ := stateless.ReadFilter(n.Params()) // another form promises nothing
			return acknowledged(honoured)
		}
		return nil
	})
	switch {
	case err != nil && !acked && attempt.Err() != nil && ctx.Err() == nil:
		return exchange.NewError(exchange.ErrorData{Reason: reasonUnsubscribed},
			"the server does not acknowledge a subscription")
	case err != nil:
		return err
	case m.Error() != nil:
		if e := translateError(m); e != nil {
			return e
		}
		return stateless.ErrorOf(m.Error())
	case !acked:
		return exchange.NewError(exchange.ErrorData{Reason: reasonUnsubscribed},
			"the server ended a subscription at once")
	}
	return nil
}
