package diagnosis

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

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

// streamable tries Streamable HTTP, and reports whether it works.
func (r *run) streamable(ctx context.Context) bool {
	var s *session
	if !r.step(ctx, "Streamable HTTP: initialize", func(ctx context.Context) (string, error) {
		response, err := r.send(ctx, http.MethodPost, r.URL, initialize, anyAnswer)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		switch response.StatusCode {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
			return "", missing(fmt.Sprintf("HTTP %d: %s", response.StatusCode, excerpt(response.Body)))
		}
		if err := r.refused(ctx, response); err != nil {
			return "", err
		}
		answer, err := answerIn(response, "1")
		if err != nil {
			return "", err
		}
		if s, err = newSession(answer); err != nil {
			return "", err
		}
		s.id = response.Header.Get("Mcp-Session-Id")
		return s.what, nil
	}) {
		return false
	}
	worked := r.step(ctx, "Streamable HTTP: a call", func(ctx context.Context) (string, error) {
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
	})
	if s.id != "" {
		worked = r.step(ctx, "Streamable HTTP: GET", func(ctx context.Context) (string, error) { return r.get(ctx, s) }) && worked
		r.step(ctx, "Streamable HTTP: DELETE", func(ctx context.Context) (string, error) { return r.end(ctx, s) })
	}
	return worked
}

// end ends a session. A server may do that itself.
func (r *run) end(ctx context.Context, s *session) (string, error) {
	response, err := r.send(ctx, http.MethodDelete, r.URL, "", s.header())
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
func (r *run) get(ctx context.Context, s *session) (string, error) {
	header := s.header()
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

// endpointTime is how long the event endpoint may take of a server that serves Streamable HTTP, and so
// needs no HTTP+SSE.
const endpointTime = 5 * time.Second

// sse tries HTTP+SSE, and reports whether it works. streamable says that Streamable HTTP does: then a
// stream without an event is that of such a server (mcp-go has one).
func (r *run) sse(ctx context.Context, streamable bool) bool {
	life, end := context.WithCancel(ctx)
	defer end()
	var stream *events
	var endpoint string
	if !r.step(ctx, "HTTP+SSE: endpoint", func(ctx context.Context) (detail string, err error) {
		if streamable {
			short, cancel := context.WithTimeout(ctx, endpointTime)
			defer cancel()
			stream, endpoint, err = r.open(short, life)
			if err != nil && short.Err() != nil {
				err = missing("the stream has no event endpoint")
			}
			return "POST to " + endpoint, err
		}
		stream, endpoint, err = r.open(ctx, life)
		return "POST to " + endpoint, err
	}) {
		return false
	}
	defer stream.body.Close()
	var s *session
	if !r.step(ctx, "HTTP+SSE: initialize", func(ctx context.Context) (string, error) {
		answer, err := r.over(ctx, stream, endpoint, initialize, "1")
		if err != nil {
			return "", err
		}
		if s, err = newSession(answer); err != nil {
			return "", err
		}
		if stream.announced.Load() {
			return s.what + "; the gateway has initialized it, too", nil
		}
		return s.what, nil
	}) {
		return false
	}
	worked := r.step(ctx, "HTTP+SSE: a call", func(ctx context.Context) (string, error) {
		if response, err := r.send(ctx, http.MethodPost, endpoint, initialized, nil); err == nil {
			response.Body.Close()
		}
		answer, err := r.over(ctx, stream, endpoint, s.call(), "2")
		if err != nil {
			return "", err
		}
		return called(answer)
	})
	if r.Wait > 0 && worked {
		worked = r.stepFor(ctx, "HTTP+SSE: a silent stream", func(ctx context.Context) (string, error) { return r.silence(ctx, stream) })
	}
	return worked
}

// open opens a stream, and returns it with the URL for its POSTs. The stream ends with life.
func (r *run) open(ctx, life context.Context) (*events, string, error) {
	opened, cancel := context.WithCancel(life)
	stop := context.AfterFunc(ctx, cancel) // until the first event is there
	response, err := r.send(opened, http.MethodGet, r.URL, "", map[string]string{"Accept": "text/event-stream"})
	switch {
	case err != nil && ctx.Err() != nil:
		stop()
		return nil, "", &fault{fmt.Sprintf("no event came in %v", r.Patience), buffers}
	case err != nil:
		stop()
		return nil, "", err
	}
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		defer response.Body.Close()
		stop()
		switch response.StatusCode {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotAcceptable, http.StatusOK:
			return nil, "", missing(fmt.Sprintf("HTTP %d, %s", response.StatusCode, kind))
		}
		return nil, "", r.refused(ctx, response)
	}
	stream := newEvents(response.Body)
	first, err := stream.next(ctx)
	stop()
	switch {
	case err != nil && ctx.Err() != nil:
		cancel()
		return nil, "", &fault{fmt.Sprintf("the stream is open, but no event came in %v", r.Patience), buffers}
	case err != nil:
		return nil, "", &fault{"the stream ended before its first event", "see the log of the server"}
	case first.name != "endpoint":
		response.Body.Close()
		return nil, "", missing("the stream does not begin with the event endpoint")
	}
	to, err := url.Parse(strings.TrimSpace(first.data))
	if err != nil {
		return nil, "", &fault{"the event endpoint has no URL", "see the server"}
	}
	to = r.at.ResolveReference(to)
	if to.Host != r.at.Host {
		return nil, "", &fault{"the event endpoint names another host, " + to.Host + ", where clients do not post", "have the proxy pass Host, and the server use it"}
	}
	return stream, to.String(), nil
}

// over posts a message, and returns the answer that comes on the stream.
func (r *run) over(ctx context.Context, stream *events, endpoint, body, id string) ([]byte, error) {
	response, err := r.send(ctx, http.MethodPost, endpoint, body, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, &fault{"HTTP 404 at the URL of the event endpoint: " + excerpt(response.Body),
			"behind a proxy that strips a prefix, have it send X-Forwarded-Prefix, or set prefix; several servers behind one address need one cluster: --nats"}
	}
	if err := r.refused(ctx, response); err != nil {
		return nil, err
	}
	if answer := readAll(response.Body); string(member(answer, "id")) == id {
		return answer, nil // some answer in the POST
	}
	for {
		e, err := stream.next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, &fault{fmt.Sprintf("the POST was taken, but no answer came on the stream in %v", r.Patience), buffers}
		case err != nil:
			return nil, &fault{"the stream has ended", "see the log of the server, and whether a proxy cuts streams"}
		case string(member([]byte(e.data), "id")) == id:
			return []byte(e.data), nil
		case e.name == "mcp-response":
			stream.announced.Store(true)
		}
	}
}

// silence sends nothing for a while, and looks whether the stream stays.
func (r *run) silence(ctx context.Context, stream *events) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	began := time.Now()
	for {
		_, err := stream.next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Sprintf("it stayed open for %v, with %d heartbeats", r.Wait, stream.comments.Load()), nil
		case err != nil:
			return "", &fault{fmt.Sprintf("it was cut after %.0f s, with %d heartbeats before", time.Since(began).Seconds(), stream.comments.Load()),
				"raise the idle timeout of the proxy, in nginx proxy_read_timeout, or send heartbeats more often: --heartbeat-interval"}
		}
	}
}

// cors tries what a browser does for a page of another origin.
func (r *run) cors(ctx context.Context) (string, error) {
	remedy := "allow the page: --allowed-origins " + r.Origin
	response, err := r.send(ctx, http.MethodOptions, r.URL, "", map[string]string{
		"Origin": r.Origin, "Access-Control-Request-Method": http.MethodPost,
		"Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version,mcp-session-id",
	})
	if err != nil {
		return "", err
	}
	response.Body.Close()
	allowed := response.Header.Get("Access-Control-Allow-Origin")
	headers := strings.ToLower(response.Header.Get("Access-Control-Allow-Headers"))
	switch {
	case response.StatusCode >= 300:
		return "", &fault{fmt.Sprintf("HTTP %d for the preflight", response.StatusCode), remedy}
	case allowed != r.Origin && allowed != "*":
		return "", &fault{fmt.Sprintf("the origin allowed is %q", allowed), remedy}
	case headers != "*" && (!strings.Contains(headers, "content-type") || !strings.Contains(headers, "mcp-session-id")):
		return "", &fault{fmt.Sprintf("the headers allowed are %q", headers), "have the server or the proxy allow the headers of MCP"}
	}
	return "allowed for " + r.Origin, nil
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
	stream := newEvents(response.Body)
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

// readAll reads a body.
func readAll(body io.Reader) []byte {
	data, _ := io.ReadAll(io.LimitReader(body, maxBody)) // what is missing is no JSON
	return data
}

// member returns a member of an object; nil if there is none.
func member(data []byte, path ...string) json.RawMessage {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil {
			return nil
		}
		data = object[name]
	}
	return data
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// event is one event of a stream.
type event struct{ name, data string }

// events reads a stream in the background, so that each wait can end.
type events struct {
	body      io.ReadCloser
	all       chan event // closed at the end of the stream
	comments  atomic.Int64
	announced atomic.Bool // a gateway has initialized the session
}

// newEvents reads body until it ends. The reader gives up events that nobody takes at its end.
func newEvents(body io.ReadCloser) *events {
	e := &events{body: body, all: make(chan event, 100)}
	go e.read() // ends with body
	return e
}

func (e *events) read() {
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
