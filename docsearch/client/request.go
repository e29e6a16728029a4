package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/pause"
)

const (
	maxTries    = 5
	firstPause  = 20 * time.Millisecond
	lastPause   = 500 * time.Millisecond
	maxResponse = 32 << 20
)

// request is one request of the API. All of them may be repeated: they read, or they
// change nothing when they come again.
type request struct {
	method string
	path   string // escaped, with its query
	body   any    // nil: none
}

// do sends the request, brings the daemon back if it is down, and reads the answer into
// out, unless that is nil.
func (c *Client) do(ctx context.Context, r request, out any) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, lastPause
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, c.attempt(ctx, r, out) },
		backoff.WithBackOff(pauses), backoff.WithMaxTries(maxTries))
	if permanent, ok := errors.AsType[*backoff.PermanentError](err); ok {
		err = permanent.Unwrap() // of the last try
	}
	if down, ok := errors.AsType[*DownError](err); ok {
		return down // it says why, whatever was lost before
	}
	if lost, ok := errors.AsType[*lostError](err); ok {
		return &DownError{Reason: fmt.Sprintf("it failed %d times during this request, at last with: %v", maxTries,
			lost),
			Advice: "look into daemon.log in " + c.opts.StateDir, Err: lost}
	}
	return err
}

// attempt sends the request once. Errors that it does not mark as permanent are worth
// another attempt.
func (c *Client) attempt(ctx context.Context, r request, out any) error {
	if ctx.Err() != nil { // it must not start a daemon any more
		return backoff.Permanent(context.Cause(ctx))
	}
	record, err := c.find(ctx)
	if err != nil {
		return backoff.Permanent(err)
	}
	err = c.send(ctx, record, r, out)
	if ctx.Err() != nil && err != nil {
		return backoff.Permanent(context.Cause(ctx))
	}
	if _, ok := errors.AsType[*lostError](err); ok {
		c.known.Store(nil) // the next call looks before it trusts a daemon
		c.log.Info("daemon lost", "pid", record.PID, "err", err)
		return err
	}
	if says, ok := errors.AsType[*APIError](err); ok && transient(says.Status) {
		return err
	}
	if err != nil {
		return backoff.Permanent(err)
	}
	return nil
}

func transient(status int) bool {
	return status == http.StatusInternalServerError || status == http.StatusServiceUnavailable
}

// send sends the request to the daemon of the record, and gives up if that hangs.
func (c *Client) send(ctx context.Context, record discovery.Record, r request, out any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := c.watch(ctx, cancel, record)
	defer stop()
	defer cancel(nil)
	err := c.exchange(ctx, record, r, out)
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(cause, errHangs):
		return &lostError{errHangs}
	case errors.Is(cause, errSlow):
		return &DownError{Reason: errSlow.Error(), Advice: "try again later", Err: errSlow}
	}
	return err
}

// watch looks after a request that takes long: it cancels it with errHangs if the
// daemon does not show that it is healthy, and with errSlow after AnswerTimeout. The caller
// ends ctx before it calls stop.
func (c *Client) watch(ctx context.Context, cancel context.CancelCauseFunc, record discovery.Record) (stop func()) {
	limit := c.opts.AnswerTimeout
	ended := make(chan struct{})
	deadline := time.Now().Add(limit)
	timer := time.AfterFunc(min(c.opts.HangTimeout, limit), func() {
		defer close(ended)
		for time.Now().Before(deadline) {
			if _, err := c.health(ctx, record); errors.Is(err, errHangs) {
				cancel(errHangs)
				return
			}
			if !pause.For(ctx, min(c.opts.HangTimeout, time.Until(deadline))) {
				return
			}
		}
		cancel(errSlow)
	})
	return func() {
		if !timer.Stop() {
			<-ended
		}
	}
}

// health asks the daemon of the record for its health. It returns errHangs if the
// daemon says nothing for HangTimeout, and a *lostError if nothing of its kind answers.
func (c *Client) health(ctx context.Context, record discovery.Record) (*api.Health, error) {
	limited, cancel := context.WithTimeoutCause(ctx, c.opts.HangTimeout, errHangs)
	defer cancel()
	var h api.Health
	err := c.exchange(limited, record, request{method: http.MethodGet, path: "/health"}, &h)
	if err != nil && errors.Is(context.Cause(limited), errHangs) {
		return nil, errHangs
	}
	return &h, err
}

// exchange sends the request and reads the answer. It returns an *APIError if the
// daemon says no, and a *lostError if the daemon is down.
func (c *Client) exchange(ctx context.Context, record discovery.Record, r request, out any) error {
	req, err := c.newRequest(ctx, record, r)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &lostError{err}
	}
	defer func() { _ = resp.Body.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return &lostError{fmt.Errorf("read answer: %w", err)}
	}
	if len(data) > maxResponse {
		return fmt.Errorf("the daemon's answer is larger than %d bytes; ask for less", maxResponse)
	}
	return decode(resp.StatusCode, data, out)
}

func (c *Client) newRequest(ctx context.Context, record discovery.Record, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, "http://"+record.Address+r.path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	return req, nil
}

// decode reads an answer. Any other text comes from another program.
func decode(status int, data []byte, out any) error {
	if status >= http.StatusBadRequest {
		var body api.ErrorBody
		if err := json.Unmarshal(data, &body); err != nil || body.Error.Code == "" {
			return &lostError{fmt.Errorf("status %d without an error of the API", status)}
		}
		says := &APIError{Status: status, Code: body.Error.Code, Message: body.Error.Message}
		if says.Code == api.CodeStopping {
			return &lostError{says}
		}
		return says
	}
	if status == http.StatusNoContent || out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &lostError{fmt.Errorf("status %d with something else than the API's JSON: %w", status, err)}
	}
	return nil
}
