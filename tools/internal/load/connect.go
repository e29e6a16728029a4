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
	Listed   time.Duration // to the list of tools
}

// Connect opens one stream, waits for the result of initialize, asks for the tools, and closes the
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
	p := site.poster(st.endpoint)
	defer p.close()
	wanted := "mcp-response"
	if capabilities != "" {
		wanted = "message"
		own := fmt.Appendf(nil,
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":%s,`+
				`"clientInfo":{"name":"compare","version":"1.0"}}}`, capabilities)
		if err := p.send(ctx, own, nil); err != nil {
			return Opening{}, err
		}
	}
	o := Opening{Endpoint: st.endpointAt.Sub(st.sentAt)}
	if o.Ready, err = st.awaitResult(ctx, "initialize", wanted); err != nil {
		return Opening{}, err
	}
	if err := p.send(ctx, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), nil); err != nil {
		return Opening{}, err
	}
	if o.Listed, err = st.awaitResult(ctx, "tools/list", "message"); err != nil {
		return Opening{}, err
	}
	return o, nil
}

// awaitResult reads the stream up to the first event with that name, which must hold a result, and
// returns when that came.
func (st *stream) awaitResult(ctx context.Context, method, event string) (time.Duration, error) {
	for {
		e, err := st.events.next()
		if err != nil {
			return 0, errors.Join(ctx.Err(), fmt.Errorf("no result of %s: %w", method, err))
		}
		if e.name != event {
			continue
		}
		at := time.Since(st.sentAt)
		var m message
		err = json.Unmarshal(e.data, &m)
		switch {
		case err == nil && m.Method != "": // the server says something of its own
			continue
		case err != nil || m.Result == nil:
			return 0, fmt.Errorf("no result of %s, but %.300s", method, e.data)
		}
		return at, nil
	}
}
