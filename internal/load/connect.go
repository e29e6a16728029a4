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
	Ready    time.Duration // to the result of the initialize that the server has run by itself
}

// Connect opens one stream, waits for the result that the server announces as
// mcp-response, and closes it. It fails when the server announces an error or,
// within opts.Timeout, nothing. Of the options only Timeout and Header matter.
func Connect(ctx context.Context, target string, opts Options) (Opening, error) {
	opts = opts.withDefaults()
	u, err := parseTarget(target)
	if err != nil {
		return Opening{}, err
	}
	st, err := (&site{u, opts.Header, opts.Timeout}).open(ctx)
	if err != nil {
		return Opening{}, err
	}
	defer st.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = st.conn.Close() })()
	if err := st.conn.SetDeadline(st.asked.Add(opts.Timeout)); err != nil {
		return Opening{}, err
	}
	for {
		e, err := st.events.next()
		if err != nil {
			return Opening{}, errors.Join(ctx.Err(), fmt.Errorf("no announcement: %w", err))
		}
		if e.name != "mcp-response" {
			continue
		}
		ready := time.Since(st.asked)
		var m message
		if err := json.Unmarshal(e.data, &m); err != nil || m.Result == nil {
			return Opening{}, fmt.Errorf("the server announces no result: %.300s", e.data)
		}
		return Opening{Endpoint: st.pointed.Sub(st.asked), Ready: ready}, nil
	}
}
