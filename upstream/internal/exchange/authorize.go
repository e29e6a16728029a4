package exchange

import (
	"context"
	"io"
	"maps"
	"net/http"
)

// Do sends one request. Headers in extra replace those of the endpoint. The caller
// must close the response's body; the end of ctx ends the body too. Errors do not
// hold the URL, which may be a secret: see [Unreached].
//
// A request that the server refuses with 401 is sent once more if Authorize has another
// header: the server has not run it. Where Authorize has none, the response is a 401 too.
func (e *Endpoint) Do(ctx context.Context, method string, body []byte, extra http.Header) (*http.Response, error) {
	if e.Authorize == nil {
		return e.send(ctx, method, body, extra)
	}
	refused, resp := "", &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}
	for range 2 {
		header, err := e.Authorize(ctx, refused)
		if ctx.Err() == nil && err != nil {
			e.Log.Warn("no token for the server", "err", err)
			break
		}
		Discard(resp)
		if ctx.Err() != nil {
			return nil, &requestError{method: method, place: e.Place(), err: ctx.Err()}
		}
		with := http.Header{"Authorization": {header}}
		maps.Copy(with, extra)
		if resp, err = e.send(ctx, method, body, with); err != nil || resp.StatusCode != http.StatusUnauthorized {
			return resp, err
		}
		refused = header
	}
	resp.Body = unauthorized{resp.Body, e.Name}
	return resp, nil
}

// unauthorized is the body of a 401 that Authorize could not avert.
type unauthorized struct {
	io.ReadCloser
	server string // its name; empty: it has none
}
