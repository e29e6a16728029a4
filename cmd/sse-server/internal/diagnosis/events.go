package diagnosis

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync/atomic"
)

// event is one event of a stream.
type event struct{ name, data string }

// events reads a stream in the background, so that each wait can end.
type events struct {
	body      io.ReadCloser
	cancel    context.CancelFunc // of the request
	done      chan struct{}      // closed when the reader has ended
	all       chan event         // closed at the end of the stream
	comments  atomic.Int64
	announced atomic.Bool // a gateway has initialized the session
}

// newEvents reads body until it ends. The reader gives up events that nobody takes at its end.
func newEvents(body io.ReadCloser, cancel context.CancelFunc) *events {
	e := &events{body: body, cancel: cancel, done: make(chan struct{}), all: make(chan event, 100)}
	go e.read() // ends with body
	return e
}

// close ends the stream.
func (e *events) close() {
	e.cancel()
	e.body.Close()
	<-e.done
}

func (e *events) read() {
	defer close(e.done)
	defer close(e.all)
	lines := bufio.NewScanner(e.body)
	lines.Buffer(nil, maxBody)
	current := event{name: "message"}
	for lines.Scan() {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && current.data != "":
			select {
			case e.all <- current:
			default: // nobody has read a hundred
				return
			}
			current = event{name: "message"}
		case line == "":
			current = event{name: "message"}
		case field == "":
			e.comments.Add(1)
		case field == "event":
			current.name = value
		case field == "data" && current.data != "":
			current.data += "\n" + value
		case field == "data":
			current.data = value
		}
		if current.name == "heartbeat" && field == "event" {
			e.comments.Add(1)
		}
	}
}

// next returns the next event.
func (e *events) next(ctx context.Context) (event, error) {
	select {
	case one, ok := <-e.all:
		if !ok {
			return event{}, io.EOF
		}
		return one, nil
	case <-ctx.Done():
		return event{}, ctx.Err()
	}
}
