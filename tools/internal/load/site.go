package load

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxIdle is how long an idle connection stays in use: some servers close theirs
// after 5 s, and a POST that meets the close is lost.
const maxIdle = 2 * time.Second

// maxAnswer bounds what is read of the body of a POST's response.
const maxAnswer = 64 << 10

// site is the server under test. It is immutable.
type site struct {
	target  *url.URL
	header  http.Header
	timeout time.Duration
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

// as returns the site as the client of that number sees it, who may have a token.
func (s *site) as(number int, tokens []string) *site {
	if len(tokens) == 0 {
		return s
	}
	own := *s
	own.header = s.header.Clone()
	if own.header == nil {
		own.header = http.Header{}
	}
	own.header.Set("Authorization", "Bearer "+tokens[number%len(tokens)])
	return &own
}

// at returns the site at another host and port.
func (s *site) at(host string) *site {
	own, target := *s, *s.target
	own.target, target.Host = &target, host
	return &own
}

// stream is an open GET. With HTTP+SSE its endpoint event has been read.
type stream struct {
	conn     net.Conn
	events   *eventReader
	endpoint *url.URL // nil without HTTP+SSE
	// sentAt is when the GET was sent, endpointAt when its endpoint came.
	sentAt, endpointAt time.Time
}

// open sends the GET and reads up to the endpoint event. The stream it returns has
// no deadline.
func (s *site) open(ctx context.Context) (*stream, error) {
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

// get sends the GET of a stream, and reads the head of the response.
func (s *site) get(st *stream, header http.Header) (*http.Response, error) {
	if err := st.conn.SetDeadline(st.sentAt.Add(s.timeout)); err != nil {
		return nil, err
	}
	get := s.request(http.MethodGet, s.target)
	maps.Copy(get.Header, header)
	get.Header.Set("Accept", "text/event-stream")
	if err := get.Write(st.conn); err != nil {
		return nil, fmt.Errorf("GET %s: %w", s.target, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(st.conn), get)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", s.target, err)
	}
	if kind := mediaType(resp); resp.StatusCode != http.StatusOK || kind != eventStream {
		return resp, fmt.Errorf("GET %s: %s, Content-Type %q: no event stream", s.target, resp.Status, kind)
	}
	st.events = newEventReader(resp.Body, maxEvent)
	return resp, nil
}

const eventStream = "text/event-stream"

func mediaType(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

func (s *site) begin(st *stream) error {
	if _, err := s.get(st, nil); err != nil {
		return err
	}
	e, err := st.events.next()
	for err == nil && e.name != "endpoint" {
		e, err = st.events.next()
	}
	if err != nil {
		return fmt.Errorf("no endpoint event: %w", err)
	}
	st.endpointAt = time.Now()
	st.endpoint, err = s.target.Parse(string(e.data))
	if err != nil {
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

	conn net.Conn // nil: none is open
	in   *bufio.Reader
	out  bytes.Buffer
	used time.Time

	session string // that the server named last
}

func (s *site) poster(endpoint *url.URL) *poster {
	post := s.request(http.MethodPost, endpoint)
	post.Header.Set("Content-Type", "application/json")
	return &poster{site: s, post: post}
}

// at returns a poster for the same endpoint at another host and port, in place of p.
func (p *poster) at(host string) *poster {
	p.site = p.site.at(host)
	endpoint := *p.post.URL
	p.post.URL, p.post.Host, endpoint.Host = &endpoint, host, host
	return p
}

// refusedError is a response to a POST with a status other than 2xx.
type refusedError struct {
	status string
	body   []byte // its beginning
}

func (e *refusedError) Error() string { return fmt.Sprintf("POST: %s: %.300s", e.status, e.body) }

// send posts a message. It fails with a *refusedError, or if no response came. The
// messages in a response with status 200 go to take, which may be nil.
func (p *poster) send(ctx context.Context, message []byte, take func(event)) error {
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
	p.session = cmp.Or(resp.Header.Get(headerSession), p.session)
	if take != nil && resp.StatusCode == http.StatusOK {
		return p.take(resp, take)
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
