package diagnosis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
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
	h := map[string]string{"Accept": anyAnswer["Accept"], "MCP-Protocol-Version": s.version}
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

// newSession reads the answer to initialize.
func newSession(answer []byte) (*session, error) {
	if failure := member(answer, "error", "message"); len(failure) > 0 {
		return nil, behind(string(failure))
	}
	s := &session{version: text(member(answer, "result", "protocolVersion")), tools: len(member(answer, "result", "capabilities", "tools")) > 0}
	if s.version == "" {
		return nil, &fault{fmt.Sprintf("the answer is no result of initialize: %.200s", answer), "check the path: this is no MCP server"}
	}
	s.what = fmt.Sprintf("%s %s, MCP %s", text(member(answer, "result", "serverInfo", "name")), text(member(answer, "result", "serverInfo", "version")), s.version)
	return s, nil
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
	if err := r.refused(ctx, response); err != nil {
		return "", err
	}
	answer, err := answerIn(response, "1")
	if err != nil {
		return "", err
	}
	s, err := newSession(answer)
	if err != nil {
		return "", err
	}
	s.id = response.Header.Get("Mcp-Session-Id")
	r.streamable = s
	return s.what, nil
}

func (r *run) call(ctx context.Context) (string, error) {
	s := r.streamable
	if response, err := r.send(ctx, http.MethodPost, r.URL, initialized, s.header()); err == nil {
		response.Body.Close()
	}
	response, err := r.send(ctx, http.MethodPost, r.URL, s.call(), s.header())
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if err := r.refused(ctx, response); err != nil {
		return "", err
	}
	if response.StatusCode == http.StatusNotFound {
		return "", &fault{"the session of a moment ago is not known", "several servers behind one address need sticky sessions, or one cluster: --nats"}
	}
	answer, err := answerIn(response, "2")
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
	return "the session has ended", r.refused(ctx, response)
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
	return "the stream is open", r.refused(ctx, response)
}

// answerIn returns the response with an id in an HTTP response, which is JSON or a stream.
func answerIn(response *http.Response, id string) ([]byte, error) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		data := readAll(response.Body)
		if string(member(data, "id")) != id {
			return nil, &fault{fmt.Sprintf("HTTP %d without an answer: %.200s", response.StatusCode, data), "check the path: this is no MCP server"}
		}
		return data, nil
	}
	stream := newEvents(response.Body, func() {})
	defer stream.close()
	for {
		e, err := stream.next(response.Request.Context())
		if err != nil {
			if response.Request.Context().Err() != nil {
				return nil, &fault{"the stream is open, but no answer came in time", buffers}
			}
			return nil, &fault{"the stream ended without an answer", "see the log of the server"}
		}
		if string(member([]byte(e.data), "id")) == id {
			return []byte(e.data), nil
		}
	}
}
