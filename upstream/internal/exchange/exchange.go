// Package exchange makes the HTTP requests of a session with a remote server, and
// says what a response means: its messages, its events, its refusals.
//
// All transports over HTTP use it. An [Endpoint] sends one request; a [Poster]
// posts messages in order; no error names what may be secret in a URL.
package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

const (
	TypeJSON   = "application/json"
	TypeEvents = "text/event-stream"
	userAgent  = "mcp-sse"
	// ErrorBodyLimit bounds what is read of the body of a response that is an
	// error: enough for a JSON-RPC error with its data.
	ErrorBodyLimit = 64 << 10
)

// Headers of Streamable HTTP, in the form that http.Header wants.
const (
	HeaderSession = "Mcp-Session-Id"
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderLastID  = "Last-Event-Id"
)

// Bounds of all sessions over HTTP.
const (
	// CloseTimeout bounds the end of a session.
	CloseTimeout = 2 * time.Second
	// AliveTimeout bounds the question whether a server is still there. A server
	// that is slow to answer it is.
	AliveTimeout = 5 * time.Second
)

// Endpoint asks one HTTP endpoint. All requests of a session go through one. It
// is immutable, and safe for concurrent use.
type Endpoint struct {
	URL     string // may hold a password or a key: see place
	Client  *http.Client
	Header  http.Header // sent with each request
	Limit   int         // of a message's length
	Log     *slog.Logger
	Metrics *metrics.Metrics
}

// Do sends one request. Its headers are those of the exchange, and over them
// extra. The response's body is the caller's to close; ctx ends it too. An error
// does not hold the URL, which may be a secret.
func (e *Endpoint) Do(ctx context.Context, method string, body []byte, extra http.Header) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	var reached atomic.Bool // a transport of the user's may call it from anywhere
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { reached.Store(false) }, // another try: the server had closed the connection
		GotConn: func(httptrace.GotConnInfo) { reached.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, method, e.URL, content)
	if err != nil {
		return nil, &requestError{method: method, place: e.Place(), err: withoutURL(err)}
	}
	req.Header.Set("User-Agent", userAgent)
	maps.Copy(req.Header, e.Header)
	switch method {
	case http.MethodPost:
		req.Header.Set("Accept", TypeJSON+", "+TypeEvents)
		req.Header.Set("Content-Type", TypeJSON)
	case http.MethodGet:
		req.Header.Set("Accept", TypeEvents)
		req.Header.Set("Cache-Control", "no-store")
	}
	maps.Copy(req.Header, extra)
	resp, err := e.Client.Do(req)
	if err != nil {
		e.Metrics.RemoteResponse(0)
		unreached := !reached.Load() && ctx.Err() == nil
		return nil, &requestError{method, e.Place(), withoutURL(err), unreached}
	}
	e.Metrics.RemoteResponse(resp.StatusCode)
	return resp, nil
}

// requestError is a request that got no response.
type requestError struct {
	method, place string
	err           error
	// unreached: there was no connection to send it on, because nothing listens
	// there, the name is unknown, or TLS failed.
	unreached bool
}

// Error names the place, but not what may be secret in the URL.
func (e *requestError) Error() string { return e.method + " " + e.place + ": " + e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// Unreached reports whether a request of do failed because there was no connection
// to the server.
func Unreached(err error) bool {
	of, ok := errors.AsType[*requestError](err)
	return ok && of.unreached
}

// Place is the URL for errors and logs.
func (e *Endpoint) Place() string { return PublicURL(e.URL) }

// withoutURL returns an error of net/http without the URL in it, or that of a
// redirect.
func withoutURL(err error) error {
	of, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok:
		return err
	case strings.HasPrefix(of.Err.Error(), "failed to parse Location header"): // net/http quotes it
		return errors.New("it redirects to what is no URL")
	}
	return of.Err
}

// Incoming is one message of a response: a JSON body is one, an event stream has
// many.
type Incoming struct {
	// Data is the message, nil for an event that only sets id or retry. It is the
	// receiver's own.
	Data []byte
	// ID is the last event id of the stream, for a resumption; empty: none so far.
	ID string
	// Retry is the pause before a resumption that the server asks for; 0: none.
	Retry time.Duration
	// tooLong: the message was over the limit and is dropped.
	TooLong bool
}

// Read reads the body of a response and calls each with what is in it. It returns
// the error of each, or that of the body; nil at its end. A body that is neither
// JSON nor an event stream is an error. Events with a name other than "message"
// are skipped. The body is not closed.
func (e *Endpoint) Read(resp *http.Response, each func(Incoming) error) error {
	switch ContentType(resp) {
	case TypeEvents:
		return e.ReadEvents(resp.Body, "", each)
	case TypeJSON:
		data, err := io.ReadAll(io.LimitReader(resp.Body, int64(e.Limit)+1))
		switch {
		case len(data) > e.Limit:
			return each(Incoming{TooLong: true})
		case err != nil:
			return err
		case len(data) == 0:
			return nil
		}
		return each(Incoming{Data: OneLine(data)})
	}
	return fmt.Errorf("its answer is neither JSON nor an event stream, but %.64q", resp.Header.Get("Content-Type"))
}

// ReadEvents reads an event stream; lastID is the id of the last event of the
// stream that it goes on with.
func (e *Endpoint) ReadEvents(body io.Reader, lastID string, each func(Incoming) error) error {
	events := NewEventReader(body, e.Limit)
	events.id, events.next.id = lastID, lastID
	for {
		ev, err := events.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		in := Incoming{ID: ev.id, Retry: ev.retry}
		if ev.Name == "" || ev.Name == "message" {
			in.Data, in.TooLong = OneLine(ev.Data), ev.TooLong
		}
		if err := each(in); err != nil {
			return err
		}
	}
}

// OneLine returns a message without line breaks.
func OneLine(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	return jsonrpc.Compact(data)
}

// ContentType returns the media type of a response in lower case, without its
// parameters.
func ContentType(resp *http.Response) string {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return media
}

// ValidHeader reports whether a header can be sent.
func ValidHeader(name string, values []string) bool {
	return httpguts.ValidHeaderFieldName(name) && !slices.ContainsFunc(values, func(v string) bool {
		return !httpguts.ValidHeaderFieldValue(v)
	})
}

// Deliver puts what came with no request into a queue.
func Deliver(x *Endpoint, to *buffer.Queue, in Incoming) error {
	if in.Data == nil {
		return nil
	}
	for _, data := range SplitBatch(in.Data) {
		if m, err := jsonrpc.Parse(data); err != nil && m == nil {
			x.Log.Warn("server sent an invalid message", "err", err)
			continue
		}
		if err := to.Push(data); err != nil {
			return err
		}
	}
	return nil
}

// SplitBatch returns the messages in a batch, which servers of MCP 2025-03-26 may
// send, and any other message as it is.
func SplitBatch(data []byte) [][]byte {
	if !bytes.HasPrefix(data, []byte("[")) {
		return [][]byte{data}
	}
	var batch []json.RawMessage
	if json.Unmarshal(data, &batch) != nil {
		return [][]byte{data}
	}
	all := make([][]byte, len(batch))
	for i, one := range batch {
		all[i] = one
	}
	return all
}

// Discard reads the rest of a short response, so that its connection can be used
// again, and closes it.
func Discard(resp *http.Response) {
	if ContentType(resp) != TypeEvents { // which may go on for ever
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, ErrorBodyLimit))
	}
	resp.Body.Close()
}
