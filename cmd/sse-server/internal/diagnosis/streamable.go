package diagnosis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The messages that are sent.
const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"sse-server-check","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listTools   = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	ping        = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
)

// anyAnswer is the Accept header of a POST.
var anyAnswer = map[string]string{"Accept": "application/json, text/event-stream"}

// session is what a client knows after initialize.
type session struct {
	id, version, what string
	tools             bool
}

func (s *session) header() map[string]string {
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
func (s *session) call() string {
	if s.tools {
		return listTools
	}
	return ping
}

// read takes what the answer to initialize says.
func (s *session) read(answer []byte) error {
	if failure := member(answer, "error", "message"); len(failure) > 0 {
		return behind(string(failure))
	}
	s.version, s.tools = text(member(answer, "result", "protocolVersion")), len(member(answer, "result", "capabilities", "tools")) > 0
	if s.version == "" {
		return &fault{fmt.Sprintf("the answer is no result of initialize: %.200s", answer), "check the path: this is no MCP server"}
	}
	s.what = fmt.Sprintf("%s %s, MCP %s", text(member(answer, "result", "serverInfo", "name")), text(member(answer, "result", "serverInfo", "version")), s.version)
	return nil
}

// behind returns the fault of a server behind what has answered.
func behind(failure string) error {
	return &fault{"the server answers with an error: " + strings.Trim(failure, `"`), "run sse-server check --start with the options of that gateway, or see the log of the server"}
}

// called says what the answer to a call has.
func called(answer []byte) (string, error) {
	if failure := member(answer, "error", "message"); len(failure) > 0 {
		return "", behind(string(failure))
	}
	if tools := member(answer, "result", "tools"); len(tools) > 0 {
		var all []json.RawMessage
		_ = json.Unmarshal(tools, &all)
		return fmt.Sprintf("%d tools", len(all)), nil
	}
	return "answered", nil
}

func (r *run) initialize(ctx context.Context) (string, error) {
	response, err := r.send(ctx, http.MethodPost, r.URL, initialize, anyAnswer)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return "", missing(fmt.Sprintf("HTTP %d: %s", response.StatusCode, excerpt(response.Body)))
	}
	if err := r.refused(response); err != nil {
		return "", err
	}
	s := &session{id: response.Header.Get("Mcp-Session-Id")}
	answer, err := r.answerIn(response, s, "1")
	if err != nil {
		return "", err
	}
	if err := s.read(answer); err != nil {
		return "", err
	}
	r.streamable = s
	return s.what, nil
}

func (r *run) call(ctx context.Context) (string, error) {
	s := r.streamable
	r.post(ctx, r.URL, []byte(initialized), s.header())
	response, err := r.send(ctx, http.MethodPost, r.URL, s.call(), s.header())
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if err := r.refused(response); err != nil {
		return "", err
	}
	if response.StatusCode == http.StatusNotFound {
		return "", &fault{"the session of a moment ago is not known", "several servers behind one address need sticky sessions, or one cluster: --nats"}
	}
	answer, err := r.answerIn(response, s, "2")
	if err != nil {
		return "", err
	}
	return called(answer)
}

func (r *run) hasSessionID() bool { return r.streamable.id != "" }

// end ends a session. A server may do that itself.
func (r *run) end(ctx context.Context) (string, error) {
	response, err := r.send(ctx, http.MethodDelete, r.URL, "", r.streamable.header())
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
const buffers = "a proxy between holds events back: switch its buffering off for this path, in nginx proxy_buffering off"

// get opens the stream of a session. A server may have none.
func (r *run) get(ctx context.Context) (string, error) {
	header := r.streamable.header()
	header["Accept"] = "text/event-stream"
	response, err := r.send(ctx, http.MethodGet, r.URL, "", header)
	if errors.Is(err, context.DeadlineExceeded) {
		return "", &fault{fmt.Sprintf("the stream did not open in %v", r.Patience), buffers}
	}
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusMethodNotAllowed || response.StatusCode == http.StatusNotFound {
		return "the server has no stream of its own, which is allowed", nil
	}
	return "the stream is open", r.refused(response)
}

// answerIn returns the response with an id in an HTTP response, which is JSON or a stream.
func (r *run) answerIn(response *http.Response, s *session, id jsonrpc.ID) ([]byte, error) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		data := readAll(response.Body)
		answer := answerTo(id, data)
		if answer == nil {
			return nil, &fault{fmt.Sprintf("HTTP %d without an answer: %.200s", response.StatusCode, data), "check the path: this is no MCP server"}
		}
		return answer, nil
	}
	ctx, cancel := context.WithCancel(response.Request.Context())
	stream := newEvents(response.Body, cancel)
	defer stream.close()
	stream.reply(func(body []byte) { r.post(ctx, r.URL, body, s.header()) })
	for {
		e, err := stream.next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, &fault{"the stream is open, but no answer came in time", buffers}
			}
			return nil, &fault{"the stream ended without an answer", "see the log of the server"}
		}
		if answer := answerTo(id, []byte(e.data)); answer != nil {
			return answer, nil
		}
	}
}
