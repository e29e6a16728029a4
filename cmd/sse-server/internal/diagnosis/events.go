package diagnosis

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// event is one event of a stream.
type event struct{ name, data string }

// events reads a stream in the background, so that each wait can end.
type events struct {
	body      io.ReadCloser
	cancel    context.CancelFunc // of the request
	goroutine sync.WaitGroup

	all      chan event  // endpoints and responses; closed at the end of the stream
	asked    chan []byte // replies to requests of the server; closed at the end of the stream
	broken   error       // nil after an end in good order; set before all is closed
	beats    atomic.Int64
	promised atomic.Bool   // there was the event connection: a gateway initializes the session
	came     chan struct{} // closed when the first event or comment has come
	firstAt  time.Time     // set before came is closed
}

// newEvents reads body until it ends, or has too much: then broken is a *fault. The caller must call close.
func newEvents(body io.ReadCloser, cancel context.CancelFunc) *events {
	e := &events{body: body, cancel: cancel, all: make(chan event, 100), asked: make(chan []byte, 100),
		came: make(chan struct{})}
	e.goroutine.Go(e.read) // ends with body
	return e
}

// reply has post send the replies to requests of the server.
func (e *events) reply(post func(body []byte)) {
	e.goroutine.Go(func() { // ends with body, but for a post, which ends with its context
		for body := range e.asked {
			post(body)
		}
	})
}

// hasCome reports whether an event or a comment has come.
func (e *events) hasCome() bool { return closed.Is(e.came) }

// close ends the stream.
func (e *events) close() {
	e.cancel()
	e.body.Close()
	e.goroutine.Wait()
}

func (e *events) read() {
	defer close(e.all)
	defer close(e.asked)
	lines := bufio.NewScanner(e.body)
	lines.Buffer(nil, maxBody)
	name, data := "message", []byte(nil)
	for lines.Scan() {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		if line != "" && e.firstAt.IsZero() {
			e.firstAt = time.Now()
			close(e.came)
		}
		switch {
		case line == "":
			if len(data) > 0 && !e.dispatch(event{name, string(data)}) {
				e.broken = &fault{"the server sends more than a hundred messages that nobody waits for",
					"see the log of the server"}
				return
			}
			name, data = "message", nil
		case field == "", field == "event" && value == "heartbeat":
			e.beats.Add(1)
		case field == "event":
			name = value
			if name == "connection" {
				e.promised.Store(true)
			}
		case field == "data" && len(data)+len(value) >= maxBody:
			e.broken = tooLong
			return
		case field == "data":
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
	if e.broken = lines.Err(); errors.Is(e.broken, bufio.ErrTooLong) {
		e.broken = tooLong
	}
}

// tooLong is the fault of an event that does not end.
var tooLong = &fault{fmt.Sprintf("an event is longer than %d MB", maxBody>>20), "see the log of the server"}

// dispatch gives an event to those who wait. Nobody waits for notifications, of which there may be many. It
// reports false if nobody has taken a hundred others.
func (e *events) dispatch(one event) bool {
	if reply := replyTo([]byte(one.data)); reply != nil {
		select {
		case e.asked <- reply:
			return true
		default:
			return false
		}
	}
	if one.name != "endpoint" && !hasResponse([]byte(one.data)) {
		return true
	}
	select {
	case e.all <- one:
		return true
	default:
		return false
	}
}

// next returns the next endpoint or response. At the end of the stream its error is io.EOF, or a *fault.
func (e *events) next(ctx context.Context) (event, error) {
	select {
	case one, ok := <-e.all:
		if f := (*fault)(nil); !ok && errors.As(e.broken, &f) {
			return event{}, f
		}
		if !ok {
			return event{}, io.EOF
		}
		return one, nil
	case <-ctx.Done():
		return event{}, ctx.Err()
	}
}

// replyTo returns the reply to a request of the server, nil if data is none. A client without
// capabilities knows ping alone.
func replyTo(data []byte) []byte {
	m, err := jsonrpc.Parse(data)
	switch {
	case err != nil || m.Kind != jsonrpc.Request:
		return nil
	case m.Method == "ping":
		return jsonrpc.NewResult(m.ID, json.RawMessage("{}"))
	}
	return jsonrpc.NewError(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found"))
}

// messagesIn returns what data holds, which is a message or an array of them.
func messagesIn(data []byte) []json.RawMessage {
	if strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
		all, _ := jsonrpc.Split(data, 100) // what is no array has none
		return all
	}
	return []json.RawMessage{data}
}

func hasResponse(data []byte) bool {
	return slices.ContainsFunc(messagesIn(data), func(one json.RawMessage) bool {
		m, err := jsonrpc.Parse(one)
		return err == nil && m.Kind == jsonrpc.Response
	})
}

// answerTo returns the response with an id in data; nil if there is none. A request of the server may have
// the same id.
func answerTo(id jsonrpc.ID, data []byte) []byte {
	for _, one := range messagesIn(data) {
		if m, err := jsonrpc.Parse(one); err == nil && m.Kind == jsonrpc.Response && m.ID == id {
			return one
		}
	}
	return nil
}
