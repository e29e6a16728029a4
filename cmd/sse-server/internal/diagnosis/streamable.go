package diagnosis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The messages that are sent.
const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"sse-server-check","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// anyAnswer is the Accept header of a POST.
var anyAnswer = map[string]string{"Accept": "application/json, text/event-stream"}

// anyAnswerWith returns anyAnswer and another header.
func anyAnswerWith(name, value string) map[string]string {
	return map[string]string{"Accept": anyAnswer["Accept"], name: value}
}

// openSession is what a client knows after initialize.
type openSession struct {
	id, version, what string
	tools             bool
}

func (s *openSession) header() map[string]string {
	h := map[string]string{"Accept": anyAnswer["Accept"]}
	if s.version != "" {
		h["MCP-Protocol-Version"] = s.version
	}
	if s.id != "" {
		h["Mcp-Session-Id"] = s.id
	}
	return h
}

// call returns a request that each server answers.
func (s *openSession) call(id jsonrpc.ID) string {
	method := "ping"
	if s.tools {
		method = "tools/list"
	}
	return string(jsonrpc.NewRequest(id, method, nil))
}

// read takes what the answer to initialize says.
func (s *openSession) read(answer []byte) error {
	if failure := failureIn(answer); failure != "" {
		return behind(failure)
	}
	s.version, s.tools = text(member(answer, "result", "protocolVersion")), len(member(answer, "result", "capabilities",
		"tools")) > 0
	if s.version == "" {
		return &fault{fmt.Sprintf("the answer is not a result of initialize: %s", answer),
			"check the path: this is not an MCP server"}
	}
	s.what = fmt.Sprintf("%s %s, MCP %s", text(member(answer, "result", "serverInfo", "name")),
		text(member(answer, "result", "serverInfo", "version")), s.version)
	return nil
}

// behind returns the fault of a server behind what has answered.
func behind(failure string) error {
	return &fault{"the server answers with an error: " + failure,
		"run sse-server check --start with the options of that gateway, or see the log of the server"}
}

// called says what the answer to a call has.
func called(answer []byte) (string, error) {
	if failure := failureIn(answer); failure != "" {
		return "", behind(failure)
	}
	if tools := member(answer, "result", "tools"); len(tools) > 0 {
		var all []json.RawMessage
		_ = json.Unmarshal(tools, &all)
		if len(all) == 1 {
			return "1 tool", nil
		}
		return fmt.Sprintf("%d tools", len(all)), nil
	}
	return "answered", nil
}

func (r *run) initialize(ctx context.Context) (string, error) {
	began := time.Now()
	response, err := r.send(ctx, http.MethodPost, r.URL, initialize, anyAnswer)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return "", missing(r.statusOf(response))
	}
	if err := r.refused(response); err != nil {
		return "", err
	}
	s := &openSession{id: response.Header.Get("Mcp-Session-Id")}
	answer, err := r.answerIn(response, began, s, "1")
	if err != nil {
		return "", err
	}
	if err := s.read(answer); err != nil {
		return "", err
	}
	r.streamable.session = s
	return s.what, nil
}

func (r *run) call(ctx context.Context) (string, error) {
	r.post(ctx, r.URL, []byte(initialized), r.streamable.session.header())
	return r.callAgain(ctx, "2")
}

// callAgain makes a call with an id that the session has not seen.
func (r *run) callAgain(ctx context.Context, id jsonrpc.ID) (string, error) {
	began, s := time.Now(), r.streamable.session
	response, err := r.send(ctx, http.MethodPost, r.URL, s.call(id), s.header())
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if err := r.refused(response); err != nil {
		return "", err
	}
	if response.StatusCode == http.StatusNotFound {
		return "", &fault{"the session of before is not known",
			"several servers behind one address need sticky sessions, or one cluster: --nats"}
	}
	answer, err := r.answerIn(response, began, s, id)
	if err != nil {
		return "", err
	}
	return called(answer)
}

func (r *run) hasSessionID() bool { return r.streamable.session.id != "" }

// end ends a session. A server may do that itself.
func (r *run) end(ctx context.Context) (string, error) {
	response, err := r.send(ctx, http.MethodDelete, r.URL, "", r.streamable.session.header())
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusMethodNotAllowed {
		return "", missing("the server ends sessions itself")
	}
	return "the session has ended", r.refused(response)
}

// buffers is the remedy where an event does not come although the server has sent it.
const buffers = "a proxy between holds events back: switch its buffering off for this path, " +
	"in nginx proxy_buffering off"

// get opens the stream of a session. A server may have none.
func (r *run) get(ctx context.Context) (string, error) {
	header := r.streamable.session.header()
	header["Accept"] = "text/event-stream"
	began := time.Now()
	response, cancel, err := r.openStream(ctx, header)
	if errors.Is(err, context.DeadlineExceeded) {
		return "", &fault{fmt.Sprintf("the stream did not open in %v", r.Patience), buffers}
	}
	if err != nil {
		return "", err
	}
	kind := response.Header.Get("Content-Type")
	if response.StatusCode == http.StatusOK && strings.HasPrefix(kind, "text/event-stream") {
		stream, life := newEvents(response.Body, cancel), response.Request.Context()
		stream.reply(func(body []byte) { r.post(life, r.URL, body, r.streamable.session.header()) })
		r.streamable.stream, r.streamable.opened = stream, began
		return "the stream is open", nil
	}
	defer cancel()
	defer response.Body.Close()
	if response.StatusCode == http.StatusMethodNotAllowed || response.StatusCode == http.StatusNotFound {
		return "the server has no stream of its own, which is allowed", nil
	}
	if err := r.refused(response); err != nil {
		return "", err
	}
	return "", &fault{fmt.Sprintf("HTTP %d, %s, and no stream", response.StatusCode, kind),
		"a server without such a stream answers with HTTP 405"}
}

// notOpen is why no stream is looked at.
const notOpen = untried("the stream did not open")

// noCall is why nothing is tried that comes after a call.
const noCall = untried("no call was answered")

// firstEvent says how soon events come through. A server need not send any: it may answer as JSON, and be
// silent on its stream.
func (r *run) firstEvent(ctx context.Context) (string, error) {
	if r.results[streamableGET] == Failed {
		return "", notOpen
	}
	if r.streamable.event != "" {
		return r.streamable.event, nil
	}
	stream := r.streamable.stream
	if stream == nil {
		return "", missing("the server answers as JSON, and has no stream")
	}
	silent := time.NewTimer(r.Grace)
	defer silent.Stop()
	select {
	case <-stream.came:
		return fmt.Sprintf("the stream had its first event after %.1f ms",
			milliseconds(stream.firstAt.Sub(r.streamable.opened))), nil
	case <-silent.C:
		return "", missing("the server answers as JSON, and has sent nothing on its stream: " +
			"a proxy that holds events back cannot be seen")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// waitOverStreamable leaves the stream of the session silent, or without one the session alone, which has
// to answer after that.
func (r *run) waitOverStreamable(ctx context.Context) (string, error) {
	switch {
	case !r.worked(streamableCall):
		return "", noCall
	case r.results[streamableGET] == Failed:
		return "", notOpen
	}
	stream := r.streamable.stream
	if stream == nil {
		return r.idle(ctx)
	}
	after, cut, err := r.silence(ctx, stream)
	switch {
	case err != nil:
		return "", err
	case !cut:
		return stayed(r.Wait, stream), nil
	case stream.broken == nil:
		return fmt.Sprintf("it ended after %.0f s in good order: clients open it again", after.Seconds()), nil
	}
	return "", cutOff(after, stream)
}

// idle leaves a session without a request, and its connection open.
func (r *run) idle(ctx context.Context) (string, error) {
	over := time.NewTimer(r.Wait)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	detail, err := r.callAgain(ctx, "3")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("there is no stream; after %v without a request a call is answered: %s", r.Wait, detail), nil
}

// answerIn returns the response with an id in an HTTP response, which is JSON or a stream. The request was
// sent at began.
func (r *run) answerIn(response *http.Response, began time.Time, s *openSession, id jsonrpc.ID) ([]byte, error) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		data, err := readAll(response.Body)
		if err != nil {
			return nil, err
		}
		answer := answerTo(id, data)
		if answer == nil {
			return nil, &fault{fmt.Sprintf("HTTP %d without an answer: %s", response.StatusCode, data),
				"check the path: this is not an MCP server"}
		}
		return answer, nil
	}
	request := response.Request.Context() // whose end the body may see before ctx does
	ctx, cancel := context.WithCancel(request)
	stream := newEvents(response.Body, cancel)
	defer stream.close()
	stream.reply(func(body []byte) { r.post(ctx, r.URL, body, s.header()) })
	for {
		e, err := stream.next(ctx)
		switch {
		case isFault(err):
			return nil, err
		case err != nil && request.Err() != nil && stream.hasCome():
			return nil, &fault{"the stream has events, but no answer came in time", "see the log of the server"}
		case err != nil && request.Err() != nil:
			return nil, &fault{"the stream is open, but no event came in time", buffers}
		case err != nil:
			return nil, &fault{"the stream ended without an answer", "see the log of the server"}
		}
		if answer := answerTo(id, []byte(e.data)); answer != nil {
			r.streamable.event = fmt.Sprintf("an answer that is a stream had its first event after %.1f ms",
				milliseconds(stream.firstAt.Sub(began)))
			if response.ContentLength >= 0 {
				r.streamable.event += "; it came with its length, " +
					"so the server or a proxy has collected all of it before"
			}
			return answer, nil
		}
	}
}
