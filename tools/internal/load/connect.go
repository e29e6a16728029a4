package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Opening is how long a stream took, from before its GET was sent.
type Opening struct {
	Endpoint time.Duration // to the endpoint event
	Ready    time.Duration // to the result of initialize
}

// Connect opens one stream, waits for the result of initialize, and closes the
// stream. With capabilities, a JSON object, it sends its own initialize, which
// declares them. Without, it sends nothing, and waits for the result that the server
// announces as mcp-response. It fails if the server answers with an error or does
// not answer within opts.Timeout. Of the options it uses only Timeout and Header.
func Connect(ctx context.Context, target, capabilities string, opts Options) (Opening, error) {
	opts = opts.withDefaults()
	u, err := parseTarget(target)
	if err != nil {
		return Opening{}, err
	}
	site := &site{u, opts.Header, opts.Timeout}
	st, err := site.open(ctx)
	if err != nil {
		return Opening{}, err
	}
	defer st.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = st.conn.Close() })()
	if err := st.conn.SetDeadline(st.sentAt.Add(opts.Timeout)); err != nil {
		return Opening{}, err
	}
	wanted := "mcp-response"
	if capabilities != "" {
		wanted = "message"
		p := site.poster(st.endpoint)
		defer p.close()
		own := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":%s,`+
			`"clientInfo":{"name":"compare","version":"1.0"}}}`, capabilities)
		if err := p.send(ctx, own, nil); err != nil {
			return Opening{}, err
		}
	}
	return st.awaitInitialized(ctx, wanted)
}

// awaitInitialized reads the stream up to the first event with that name, which must
// hold a result.
func (st *stream) awaitInitialized(ctx context.Context, event string) (Opening, error) {
	for {
		e, err := st.events.next()
		if err != nil {
			return Opening{}, errors.Join(ctx.Err(), fmt.Errorf("no result of initialize: %w", err))
		}
		if e.name != event {
			continue
		}
		ready := time.Since(st.sentAt)
		var m message
		if err := json.Unmarshal(e.data, &m); err != nil || m.Result == nil {
			return Opening{}, fmt.Errorf("no result of initialize, but %.300s", e.data)
		}
		return Opening{Endpoint: st.endpointAt.Sub(st.sentAt), Ready: ready}, nil
	}
}
