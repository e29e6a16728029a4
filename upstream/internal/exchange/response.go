package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

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

// Deliver puts what came with no request into a queue.
func (e *Endpoint) Deliver(to *buffer.Queue, in Incoming) error {
	if in.Data == nil {
		return nil
	}
	for _, data := range SplitBatch(in.Data) {
		if m, err := jsonrpc.Parse(data); err != nil && m == nil {
			e.Log.Warn("server sent an invalid message", "err", err)
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
