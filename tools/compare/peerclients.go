package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds a line, and an answer, of a server.
const maxAnswer = 1 << 20

// client is a plain client of MCP: it does what its methods say, and repairs nothing.
type client interface {
	// ask sends a request and returns its result.
	ask(ctx context.Context, method, params string) (json.RawMessage, error)
	// tell sends a notification.
	tell(ctx context.Context, method string) error
	close()
}

// openAndList initializes a session, and lists its tools.
func openAndList(ctx context.Context, c client, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.ask(ctx, "initialize",
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"compare","version":"1.0"}}`)
	if err == nil {
		err = c.tell(ctx, "notifications/initialized")
	}
	if err == nil {
		_, err = c.ask(ctx, "tools/list", "{}")
	}
	return err
}

// echoes calls the tool echo, and fails unless it gets back what it sent.
func echoes(ctx context.Context, c client, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	text := strconv.FormatInt(time.Now().UnixNano(), 36)
	result, err := c.ask(ctx, "tools/call", `{"name":"echo","arguments":{"message":"`+text+`"}}`)
	if err == nil && !bytes.Contains(result, []byte(text)) {
		err = fmt.Errorf("the answer is not its own: %s", result)
	}
	return err
}

// request is a message with an id; the id 0 is that of a notification.
func request(id int, method, params string) []byte {
	if id == 0 {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q}`, method)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// answer is what a message says of the request with an id: whether it answers it, and how.
func answer(data []byte, id int) (result json.RawMessage, err error, mine bool) {
	var m struct {
		ID     json.RawMessage
		Method string
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if json.Unmarshal(data, &m) != nil || m.Method != "" || string(m.ID) != strconv.Itoa(id) {
		return nil, nil, false
	}
	if m.Error != nil {
		return nil, errors.New(m.Error.Message), true
	}
	return m.Result, nil, true
}

// await returns the answer to the request with an id, from messages that come.
func await(ctx context.Context, messages <-chan []byte, id int) (json.RawMessage, error) {
	for {
		select {
		case data, open := <-messages:
			if !open {
				return nil, errors.New("the stream ended without the answer")
			}
			if result, err, mine := answer(data, id); mine {
				return result, err
			}
		case <-ctx.Done():
			return nil, errors.New("no answer in time")
		}
	}
}

// refusal is a response that is not 2xx.
func refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	var m struct{ Error *struct{ Message string } }
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &m) == nil && m.Error != nil {
		text = m.Error.Message
	}
	return fmt.Errorf("%d, %s", resp.StatusCode, text)
}

// eventData sends the data of each event of a stream, and the first event of another name to named.
func eventData(stream io.Reader, data chan<- []byte, named func(name, data string)) {
	name := ""
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			name = value
		case field == "data" && (name == "" || name == "message"):
			data <- []byte(value)
		case field == "data":
			named(name, value)
		case lines.Text() == "":
			name = ""
		}
	}
}

// httpClient speaks Streamable HTTP.
type httpClient struct {
	url, session string
	id           int
	http         http.Client
}

func newHTTPClient(url string) client {
	return &httpClient{url: url, http: http.Client{Transport: &http.Transport{}}}
}

func (c *httpClient) ask(ctx context.Context, method, params string) (json.RawMessage, error) {
	c.id++
	resp, err := c.post(ctx, request(c.id, method, params))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if session := resp.Header.Get("Mcp-Session-Id"); session != "" {
		c.session = session
	}
	messages := make(chan []byte, 100)
	go func() { // ends with the body
		defer close(messages)
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			eventData(resp.Body, messages, func(string, string) {})
			return
		}
		if body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err == nil {
			messages <- body
		}
	}()
	return await(ctx, messages, c.id)
}

func (c *httpClient) tell(ctx context.Context, method string) error {
	resp, err := c.post(ctx, request(0, method, ""))
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func (c *httpClient) post(ctx context.Context, message []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	return send(&c.http, req)
}

func (c *httpClient) close() { c.http.CloseIdleConnections() }

// send sends a request, and fails at a response that is not 2xx.
func send(c *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := c.Do(req)
	if err == nil && resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, err
}

// sseClient speaks HTTP+SSE.
type sseClient struct {
	endpoint string
	messages chan []byte
	id       int
	http     http.Client
	cut      context.CancelFunc // of the stream
}

// newSSEClient opens a stream, and waits for its endpoint.
func newSSEClient(ctx context.Context, stream string, timeout time.Duration) (*sseClient, error) {
	ctx, cut := context.WithCancel(ctx)
	c := &sseClient{messages: make(chan []byte, 100), cut: cut, http: http.Client{Transport: &http.Transport{}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, stream, nil)
	if err != nil {
		cut()
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := send(&c.http, req)
	if err != nil {
		cut()
		return nil, err
	}
	endpoints := make(chan string, 10)
	go func() { // ends with the stream, which close cuts
		defer close(c.messages)
		defer resp.Body.Close()
		eventData(resp.Body, c.messages, func(name, data string) {
			if name == "endpoint" {
				endpoints <- data
			}
		})
	}()
	select {
	case endpoint := <-endpoints:
		base, err := url.Parse(stream)
		if err == nil {
			base, err = base.Parse(endpoint)
		}
		if err != nil {
			cut()
			return nil, err
		}
		c.endpoint = base.String()
		return c, nil
	case <-time.After(timeout):
		cut()
		return nil, errors.New("no endpoint event in time")
	}
}

func (c *sseClient) ask(ctx context.Context, method, params string) (json.RawMessage, error) {
	c.id++
	if err := c.post(ctx, request(c.id, method, params)); err != nil {
		return nil, err
	}
	return await(ctx, c.messages, c.id)
}

func (c *sseClient) tell(ctx context.Context, method string) error {
	return c.post(ctx, request(0, method, ""))
}

func (c *sseClient) post(ctx context.Context, message []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(message))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := send(&c.http, req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func (c *sseClient) close() {
	c.cut()
	c.http.CloseIdleConnections()
}

// stdioClient speaks to a program that it starts.
type stdioClient struct {
	program  *program
	stdin    io.WriteCloser
	messages chan []byte
	id       int
	err      error // of the start
}

// newStdioClient starts a program. A failure is that of the first message.
func newStdioClient(command []string, state string) client {
	c := &stdioClient{messages: make(chan []byte, 100)}
	cmd := ownGroup(command, state)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.err = err
		return c
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.err = err
		return c
	}
	if c.stdin, c.err = stdin, cmd.Start(); c.err != nil {
		return c
	}
	c.program = &program{cmd: cmd, ended: make(chan struct{})}
	go func() { // ends with the program, which close stops
		defer close(c.program.ended)
		defer close(c.messages)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, maxAnswer)
		for lines.Scan() {
			c.messages <- bytes.Clone(lines.Bytes())
		}
		_ = cmd.Wait()
	}()
	return c
}

func (c *stdioClient) ask(ctx context.Context, method, params string) (json.RawMessage, error) {
	c.id++
	if err := c.write(request(c.id, method, params)); err != nil {
		return nil, err
	}
	return await(ctx, c.messages, c.id)
}

func (c *stdioClient) tell(_ context.Context, method string) error {
	return c.write(request(0, method, ""))
}

func (c *stdioClient) write(message []byte) error {
	if c.err != nil {
		return c.err
	}
	_, err := c.stdin.Write(append(message, '\n'))
	return err
}

func (c *stdioClient) close() {
	if c.program != nil {
		_ = c.stdin.Close()
		c.program.stop()
	}
}
