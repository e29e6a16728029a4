package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Reader reads the response to one request: it returns the answer and passes on the
// messages around it. One goroutine uses it.
//
// Every transport reads alike. A message without an id is the answer, because the
// response belongs to one request. Batches are taken apart (MCP 2025-03-26). A message
// over the limit fails the request.
type Reader struct {
	Endpoint *Endpoint
	ID       jsonrpc.ID // of the request
	// HasSession says that the server has given the session an id. 404 then means
	// that the server has forgotten it.
	HasSession bool
	// IsCall says that the request calls a tool: a refusal that its client can have mended is a result for the model.
	IsCall bool
	// VisitsURLs says that the client has its person visit an address: a refusal that a visit mends asks for it.
	VisitsURLs bool
	// IsStateless says that results are those of MCP 2026-07-28.
	IsStateless bool
	// Other takes every message that is not the answer, also one that is invalid but
	// has an id, and may wait. Its error ends the reading. nil: they are dropped.
	Other func(*jsonrpc.Message) error
	// Cursor is how far Read came in an event stream.
	Cursor Cursor

	events  *EventReader      // nil: the response is no stream
	pending []json.RawMessage // messages of a body or an event that are not handled yet
	doubt   *jsonrpc.Error    // of a message that may have been the answer; nil: there was none
	ended   bool              // before the answer
	empty   bool              // see Empty
}

// Read returns the answer, which has the id of the request. The error is a
// *[jsonrpc.Error] with which to answer the request, or the reason why the session
// is over. The caller closes the body.
//
// A caller may read several responses in turn, to resume a stream: see Resumable.
func (r *Reader) Read(resp *http.Response) (*jsonrpc.Message, error) {
	if resp.StatusCode >= 300 {
		return r.refused(resp)
	}
	r.events, r.pending = nil, nil
	r.empty = false
	if err := Encoded(resp); err != nil {
		return nil, InvalidResponse("it %v", err)
	}
	accepted := resp.StatusCode == http.StatusAccepted
	var err error
	switch contentType(resp) {
	case typeEvents:
		r.events = NewEventReader(resp.Body, r.Endpoint.Limit, r.Cursor)
	case typeJSON:
		err = r.document(resp.Body)
	default:
		r.empty = accepted
		return nil, notAnAnswer(resp)
	}
	r.empty = r.events != nil // so far
	var answer *jsonrpc.Message
	for answer == nil && err == nil {
		answer, err = r.step()
	}
	if errors.Is(err, jsonrpc.ErrTooLong) {
		r.Endpoint.Metrics.Dropped(metrics.DroppedTooLong)
		err = InvalidResponse("it is over the limit of %d bytes", r.Endpoint.Limit)
	}
	failure, final := errors.AsType[*jsonrpc.Error](err)
	r.empty = answer == nil && !final && (accepted || r.empty && errors.Is(err, io.EOF))
	r.ended = answer == nil && !final
	switch {
	case answer != nil:
		return answer, nil
	case final:
		return nil, failure
	case r.doubt != nil: // most likely it was the answer
		return nil, r.doubt
	case errors.Is(err, io.EOF):
		return nil, LostResponse(nil)
	case resp.Uncompressed: // net/http has asked for gzip, and takes it out
		return nil, LostResponse(errors.New("its gzip body is cut short or damaged"))
	}
	return nil, LostResponse(err)
}

// Empty reports whether the last Read found a successful response that is no answer and can be
// none: a 202, whatever its body says, or an event stream that ended without a message.
func (r *Reader) Empty() bool { return r.empty }

// Resumable reports whether the last Read found the end of an event stream before
// the answer, and a GET with Cursor.LastID can resume the stream.
func (r *Reader) Resumable() bool { return r.ended && r.Cursor.LastID != "" }

// Rest reads what follows the answer, to the end of the response, and returns why that
// ended; nil if Other did not take a message.
func (r *Reader) Rest() error {
	for {
		data, err := r.next()
		if err != nil {
			return err
		}
		if m, _ := r.parse(data); m != nil && r.Other != nil && r.Other(m) != nil {
			return nil
		}
	}
}

// document reads a JSON body.
func (r *Reader) document(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, int64(r.Endpoint.Limit)+1))
	switch {
	case len(data) > r.Endpoint.Limit:
		return jsonrpc.ErrTooLong
	case err != nil:
		return err
	case len(data) > 0:
		r.pending = splitBatch(data)
	}
	return nil
}

// next returns the next message of the response, and io.EOF at its end.
func (r *Reader) next() ([]byte, error) {
	for len(r.pending) == 0 {
		if r.events == nil {
			return nil, io.EOF
		}
		e, err := r.events.Read()
		r.Cursor = r.events.Cursor
		switch {
		case err != nil:
			return nil, err
		case e.IsMessage():
			r.pending = splitBatch(e.Data)
		}
	}
	r.empty = false
	data := r.pending[0]
	r.pending = r.pending[1:]
	return data, nil
}

// step handles one message, and returns it if it is the answer.
func (r *Reader) step() (*jsonrpc.Message, error) {
	data, err := r.next()
	if err != nil {
		return nil, err
	}
	m, failure := r.parse(data)
	switch {
	case m == nil:
		return nil, nil
	case failure != nil && m.ID == r.ID:
		return nil, InvalidResponse("it is not a JSON-RPC message: %s", failure.Message)
	case m.Kind == jsonrpc.Response && m.ID == r.ID:
		return m, nil
	case m.Kind == jsonrpc.Response && m.ID == jsonrpc.Null:
		return withID(m, r.ID)
	case r.Other == nil:
		return nil, nil
	}
	return nil, r.Other(m)
}

// parse reads a message. It returns nil for one whose id is not certain.
func (r *Reader) parse(data []byte) (*jsonrpc.Message, *jsonrpc.Error) {
	m, err := jsonrpc.Parse(data)
	if err == nil {
		return m, nil
	}
	failure, _ := errors.AsType[*jsonrpc.Error](err) // all errors of Parse are
	if m == nil {
		r.Endpoint.Metrics.Dropped(metrics.DroppedInvalidMessage)
		if r.doubt == nil { // there may be many
			r.Endpoint.Log.Warn("server sent an invalid message", "err", err)
		}
		r.doubt = InvalidResponse("it is not a JSON-RPC message: %s", failure.Message)
	}
	return m, failure
}

// withID returns a message with another id.
func withID(m *jsonrpc.Message, id jsonrpc.ID) (*jsonrpc.Message, error) {
	m, err := jsonrpc.Parse(m.WithID(id))
	if err != nil {
		return nil, InvalidResponse("%v", err)
	}
	return m, nil
}

// maxBatch bounds the messages of a batch. A larger one is an invalid message.
const maxBatch = 100_000

// splitBatch returns the messages of a batch, which servers of MCP 2025-03-26 may
// send, and any other message as it is.
func splitBatch(data []byte) []json.RawMessage {
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("[")) {
		if batch, err := jsonrpc.Split(data, maxBatch); err == nil {
			return batch
		}
	}
	return []json.RawMessage{data}
}

// codings are the content codings that change a body (RFC 9110 and its registry). Servers name
// others that do not, such as "identity", "utf-8" and "none".
var codings = []string{"gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd", "dcb", "dcz"}

// Encoded returns an error that names the encoding of a body that cannot be read; nil for a
// plain one. The header no longer names an encoding that net/http has asked for and decoded.
func Encoded(resp *http.Response) error {
	encoding := strings.Join(resp.Header.Values("Content-Encoding"), ", ")
	for name := range strings.SplitSeq(encoding, ",") {
		if slices.Contains(codings, strings.ToLower(strings.TrimSpace(name))) {
			return fmt.Errorf("is encoded as %.64q, which the gateway did not ask for: "+
				"have the server or the proxy before it send it plain", encoding)
		}
	}
	return nil
}

// IsStream reports whether a response is a successful event stream.
func IsStream(resp *http.Response) bool {
	return resp.StatusCode < 300 && contentType(resp) == typeEvents
}

// contentType returns the media type of a response in lower case, without its
// parameters.
func contentType(resp *http.Response) string {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return media
}
