package diagnosis

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// untilRead reads a stream to its end before anything is taken.
func untilRead(body io.Reader) *events {
	e := newEvents(io.NopCloser(body), func() {})
	e.goroutine.Wait()
	return e
}

// Notifications do not keep an answer from those who come for it later, nor do they end a stream.
func TestNotificationsDoNotFillAStream(t *testing.T) {
	const notification = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
	stream := untilRead(strings.NewReader(strings.Repeat(notification+"data: no JSON\n\nevent: heartbeat\ndata: {}\n\n", 500) + "data: " + answer + "\n\ndata: [" + answer + "]\n\n"))
	for _, want := range []string{answer, "[" + answer + "]"} {
		if got, err := stream.next(t.Context()); err != nil || got.data != want {
			t.Errorf("got %q, %v, want %s", got.data, err, want)
		}
	}
	if _, err := stream.next(t.Context()); err != io.EOF || stream.broken != nil {
		t.Errorf("the stream ends with %v, broken by %v", err, stream.broken)
	}
}

// endless is the beginning of an event, and lines of it without an end.
type endless struct{ left string }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == "" {
		e.left = strings.Repeat("data: "+strings.Repeat("x", 100)+"\n", 1000)
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// A stream that has too much ends with a fault that says so, wherever it is read.
func TestStreamsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		body io.Reader
		want string
	}{
		"event without end": {new(endless), "an event is longer than 16 MB"},
		"line without end":  {strings.NewReader("data: " + strings.Repeat("x", maxBody)), "an event is longer than 16 MB"},
		"answers":           {strings.NewReader(strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n", 200)), "more than a hundred messages"},
		"questions":         {strings.NewReader(strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n\n", 200)), "more than a hundred messages"},
	} {
		r := &run{Options: Options{Wait: time.Hour}, results: map[string]Result{streamableCall: OK}}
		r.streamable.stream = untilRead(test.body)
		_, err := r.waitOverStreamable(context.Background())
		var f *fault
		if !errors.As(err, &f) || !strings.Contains(f.what, test.want) || f.remedy == "" {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// over is the context of a request whose time is over, which those that hang on it have not seen yet.
type over struct{ context.Context }

func (over) Err() error            { return context.DeadlineExceeded }
func (over) Done() <-chan struct{} { return make(chan struct{}) }

// A body that the time of its request has ended is no end of the stream, in whatever order the two are seen.
func TestTimeThatIsOverEndsNoStream(t *testing.T) {
	for _, ended := range []error{context.DeadlineExceeded, io.ErrUnexpectedEOF} {
		response := &http.Response{
			Header:  http.Header{"Content-Type": {"text/event-stream"}},
			Body:    io.NopCloser(iotest.ErrReader(ended)),
			Request: new(http.Request).WithContext(over{t.Context()}),
		}
		_, err := new(run).answerIn(response, time.Now(), new(openSession), jsonrpc.ID("1"))
		var f *fault
		if !errors.As(err, &f) || f.remedy != buffers {
			t.Errorf("%v: got %v", ended, err)
		}
	}
}
