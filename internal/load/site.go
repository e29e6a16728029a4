package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxIdle is how long an idle connection stays in use: some servers close theirs
// after 5 s, and a POST that meets the close is lost.
const maxIdle = 2 * time.Second

// sessionHeader holds the id of a session of Streamable HTTP.
const sessionHeader = "Mcp-Session-Id"

// maxAnswer bounds what is read of the body of a POST's response.
const maxAnswer = 64 << 10

// site is the server under test. It is immutable.
type site struct {
	target  *url.URL
	header  http.Header
	timeout time.Duration
	// streamable: answers come on the responses to POSTs, and there is no GET.
	streamable bool
}

// dial opens a connection that serves one request at a time.
func (s *site) dial(ctx context.Context) (net.Conn, error) {
	port := s.target.Port()
	if port == "" {
		port = s.target.Scheme
	}
	address := net.JoinHostPort(s.target.Hostname(), port)
	plain := &net.Dialer{Timeout: s.timeout}
	if s.target.Scheme == "http" {
		return plain.DialContext(ctx, "tcp", address)
	}
	secure := tls.Dialer{NetDialer: plain, Config: &tls.Config{NextProtos: []string{"http/1.1"}}}
	return secure.DialContext(ctx, "tcp", address)
}

// request returns a request with the site's header.
func (s *site) request(method string, at *url.URL) *http.Request {
	r := &http.Request{
		Method: method, URL: at, Host: at.Host, Header: s.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("User-Agent", "leaktest")
	return r
}

// stream is an open GET, from its endpoint event on. Over Streamable HTTP it is a session,
// and there is no GET.
type stream struct {
	conn     net.Conn     // nil: there is no GET
	events   *eventReader // nil with conn
	endpoint *url.URL
	// sentAt is when the GET was sent, endpointAt when its endpoint came.
	sentAt, endpointAt time.Time
}

// open sends the GET and reads up to the endpoint event. The stream it returns has
// no deadline.
func (s *site) open(ctx context.Context) (*stream, error) {
	if s.streamable {
		return &stream{endpoint: s.target}, nil
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	st := &stream{conn: conn, sentAt: time.Now()}
	if err := s.begin(st); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return st, nil
}

func (s *site) begin(st *stream) error {
	if err := st.conn.SetDeadline(st.sentAt.Add(s.timeout)); err != nil {
		return err
	}
	get := s.request(http.MethodGet, s.target)
	get.Header.Set("Accept", "text/event-stream")
	if err := get.Write(st.conn); err != nil {
		return fmt.Errorf("GET %s: %w", s.target, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(st.conn), get)
	if err != nil {
		return fmt.Errorf("GET %s: %w", s.target, err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		return fmt.Errorf("GET %s: %s, Content-Type %q: no event stream", s.target, resp.Status, kind)
	}
	st.events = newEventReader(resp.Body, maxEvent)
	e, err := st.events.next()
	for err == nil && e.name != "endpoint" {
		e, err = st.events.next()
	}
	if err != nil {
		return fmt.Errorf("no endpoint event: %w", err)
	}
	st.endpointAt = time.Now()
	if st.endpoint, err = s.target.Parse(string(e.data)); err != nil {
		return fmt.Errorf("endpoint %q: %w", e.data, err)
	}
	if st.endpoint.Host != s.target.Host || st.endpoint.Scheme != s.target.Scheme {
		return fmt.Errorf("endpoint %q is at another origin", e.data)
	}
	return st.conn.SetDeadline(time.Time{})
}

// poster sends messages to one endpoint, one at a time.
type poster struct {
	site *site
	post *http.Request
	take func(event) // gets the messages of a response; nil: they are dropped

	conn net.Conn // nil: none is open
	in   *bufio.Reader
	out  bytes.Buffer
	used time.Time
}

func (s *site) poster(endpoint *url.URL) *poster {
	post := s.request(http.MethodPost, endpoint)
	post.Header.Set("Content-Type", "application/json")
	return &poster{site: s, post: post}
}

// refusedError is a response to a POST with a status other than 2xx.
type refusedError struct {
	status string
	body   []byte // its beginning
}

func (e *refusedError) Error() string { return fmt.Sprintf("POST: %s: %.300s", e.status, e.body) }

// send posts a message. It fails with a *refusedError, or if no response came.
func (p *poster) send(ctx context.Context, message []byte) error {
	if p.conn != nil && time.Since(p.used) > maxIdle {
		p.close()
	}
	if p.conn == nil {
		conn, err := p.site.dial(ctx)
		if err != nil {
			return err
		}
		p.conn, p.in = conn, bufio.NewReader(conn)
	}
	resp, err := p.exchange(message)
	if err != nil {
		p.close()
		return fmt.Errorf("POST: %w", err)
	}
	defer resp.Body.Close()
	if id := resp.Header.Get(sessionHeader); id != "" {
		p.post.Header.Set(sessionHeader, id)
	}
	if p.take != nil && resp.StatusCode == http.StatusOK {
		return p.takeAll(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	p.used = time.Now()
	if err != nil || resp.Close || len(body) > maxAnswer {
		p.close()
	}
	if resp.StatusCode/100 != 2 {
		return &refusedError{resp.Status, body}
	}
	return nil
}

// takeAll takes the messages of a response: one as JSON, or a stream of them.
func (p *poster) takeAll(resp *http.Response) error {
	err := p.takeBody(resp)
	p.used = time.Now()
	if err != nil || resp.Close {
		p.close()
	}
	return err
}

func (p *poster) takeBody(resp *http.Response) error {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		events := newEventReader(resp.Body, maxEvent)
		for {
			e, err := events.next()
			if err == io.EOF {
				return nil
			} else if err != nil {
				return fmt.Errorf("response to a POST: %w", err)
			}
			p.take(e)
		}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent+1))
	switch {
	case err != nil:
		return fmt.Errorf("response to a POST: %w", err)
	case len(body) > maxEvent:
		return errEventTooLong
	}
	p.take(event{data: body})
	return nil
}

// leave ends a session of Streamable HTTP.
func (p *poster) leave(ctx context.Context) error {
	p.post.Method = http.MethodDelete
	return p.send(ctx, nil)
}

func (p *poster) exchange(message []byte) (*http.Response, error) {
	if err := p.conn.SetDeadline(time.Now().Add(p.site.timeout)); err != nil {
		return nil, err
	}
	p.post.Body, p.post.ContentLength = io.NopCloser(bytes.NewReader(message)), int64(len(message))
	p.out.Reset()
	if err := p.post.Write(&p.out); err != nil {
		return nil, err
	}
	if _, err := p.conn.Write(p.out.Bytes()); err != nil {
		return nil, err
	}
	return http.ReadResponse(p.in, p.post)
}

func (p *poster) close() {
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}
