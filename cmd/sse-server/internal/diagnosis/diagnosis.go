// Package diagnosis finds out, step by step, what a client meets at the URL of an MCP server: a gateway,
// any other server, or a proxy in front of one. It is a client that speaks no more MCP than it must, so
// that it sees what SDKs hide: status codes, times, and streams that a proxy holds back or cuts.
//
//	DNS ▶ TCP ▶ TLS ▶ HTTP ─┬▶ Streamable HTTP: initialize, a call, GET, DELETE
//	                        └▶ HTTP+SSE: endpoint, initialize, a call ▶ a silent stream
//
// After a fault in the first row nothing more can be found out. One of the two transports is enough.
package diagnosis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/upstream"
)

// Options say what to look at. URL is needed.
type Options struct {
	URL    string
	Header http.Header // of each request, such as Authorization
	// Origin is that of a web page whose requests are tried; empty: none are.
	Origin string
	// Wait is how long a stream is left silent, to see whether something cuts it; 0: not at all.
	Wait time.Duration
	// Patience bounds each step; 0 means 10 s.
	Patience time.Duration
}

// Result is how a step ended.
type Result string

// The results of a step.
const (
	OK      Result = "ok"
	Failed  Result = "failed"
	Missing Result = "not served" // which is no fault, unless the other transport is missing too
)

// Step is one thing that was tried.
type Step struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Milliseconds is the time that it took.
	Milliseconds float64 `json:"milliseconds"`
	Detail       string  `json:"detail"`
	// Remedy is what to do; empty unless the step failed.
	Remedy string `json:"remedy,omitempty"`
}

// fault is why a step failed, and what to do.
type fault struct{ what, remedy string }

func (f *fault) Error() string { return f.what }

// missing says that something is not served, which may be in order.
type missing string

func (m missing) Error() string { return string(m) }

// run is one diagnosis.
type run struct {
	Options
	at     *url.URL
	client *http.Client
	report func(Step)
	failed bool
}

// Run tries each step and reports it. It returns whether a client can work there.
func Run(ctx context.Context, o Options, report func(Step)) bool {
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	r := &run{Options: o, report: report}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	r.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var err error
	if r.at, err = url.Parse(o.URL); err != nil || r.at.Host == "" {
		r.step(ctx, "URL", func(context.Context) (string, error) {
			return "", &fault{"this is no URL", "write it as http://HOST:PORT/mcp"}
		})
		return false
	}
	if !r.network(ctx, transport) {
		return false
	}
	streamable := r.streamable(ctx)
	if r.failed { // the same would fail again
		return false
	}
	sse := r.sse(ctx, streamable)
	if !streamable && !sse && !r.failed {
		r.step(ctx, "MCP", func(ctx context.Context) (string, error) { return "", r.noMCP(ctx) })
	}
	if o.Origin != "" && (streamable || sse) {
		r.step(ctx, "CORS", r.cors)
	}
	return !r.failed
}

// step runs and reports one step, and returns whether it worked.
func (r *run) step(ctx context.Context, name string, try func(context.Context) (detail string, err error)) bool {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	return r.stepFor(ctx, name, try)
}

// stepFor is step with a time of its own.
func (r *run) stepFor(ctx context.Context, name string, try func(context.Context) (detail string, err error)) bool {
	began := time.Now()
	detail, err := try(ctx)
	s := Step{Name: name, Result: OK, Detail: detail, Milliseconds: float64(time.Since(began).Microseconds()) / 1000}
	var f *fault
	var m missing
	switch {
	case err == nil:
	case errors.As(err, &m):
		s.Result, s.Detail = Missing, string(m)
	case errors.As(err, &f):
		s.Result, s.Detail, s.Remedy = Failed, f.what, f.remedy
	case errors.Is(err, context.DeadlineExceeded):
		s.Result, s.Detail = Failed, fmt.Sprintf("there was no answer in %v", r.Patience)
		s.Remedy = "see whether the server runs, and whether something between holds its answers back"
	default:
		s.Result, s.Detail, s.Remedy = Failed, err.Error(), "see whether the server runs, and its log"
	}
	if s.Result == Failed {
		r.failed = true
	}
	s.Detail, s.Remedy = withoutSecrets(s.Detail), withoutSecrets(s.Remedy)
	r.report(s)
	return err == nil
}

// urls finds URLs in texts.
var urls = regexp.MustCompile(`https?://[^\s"'<>|]+`)

// place returns a URL without what may be secret in it.
func place(at string) string { return upstream.URL{Address: at}.Place() }

// withoutSecrets returns a text with the place of each URL in it.
func withoutSecrets(text string) string {
	return urls.ReplaceAllStringFunc(text, func(found string) string {
		at := strings.TrimRight(found, ".,;:)]}")
		return place(at) + found[len(at):]
	})
}

// network reports whether HTTP requests reach something.
func (r *run) network(ctx context.Context, transport *http.Transport) bool {
	if proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: r.at}); proxy != nil {
		return r.step(ctx, "proxy", func(context.Context) (string, error) {
			return "the environment has the requests go through " + proxy.Host, nil
		})
	}
	host, port := r.at.Hostname(), r.at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[r.at.Scheme]
	}
	if _, err := netip.ParseAddr(host); err != nil && !r.step(ctx, "DNS", func(ctx context.Context) (string, error) {
		addrs, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return "", &fault{fmt.Sprintf("there is no address of %s", host), "check the name of the host, and the DNS of this machine"}
		}
		return host + " is " + strings.Join(addrs, ", "), nil
	}) {
		return false
	}
	if !r.step(ctx, "TCP", func(ctx context.Context) (string, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
		if err != nil {
			return "", unreachable(err)
		}
		defer conn.Close()
		return "connected to " + conn.RemoteAddr().String(), nil
	}) {
		return false
	}
	return r.at.Scheme != "https" || r.step(ctx, "TLS", func(ctx context.Context) (string, error) {
		conn, err := (&tls.Dialer{Config: transport.TLSClientConfig}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
		if err != nil {
			return "", wrongTLS(err)
		}
		defer conn.Close()
		state := conn.(*tls.Conn).ConnectionState()
		return fmt.Sprintf("%s, the certificate is valid until %s", tls.VersionName(state.Version),
			state.PeerCertificates[0].NotAfter.Format(time.DateOnly)), nil
	})
}

func unreachable(err error) error {
	remedy := "see whether a firewall is between"
	if strings.Contains(err.Error(), "refused") {
		remedy = "start the server, or check the port; in a container it has to listen on 0.0.0.0"
	}
	return &fault{plain(err), remedy}
}

func wrongTLS(err error) error {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return &fault{"the server does not speak TLS there", "use http:// in the client, or set tls-cert"}
	case strings.Contains(err.Error(), "unknown authority"):
		return &fault{"the certificate is of an authority that this machine does not know", "have the client trust it: NODE_EXTRA_CA_CERTS for Node.js, SSL_CERT_FILE for others"}
	}
	return &fault{plain(err), "check the certificate: its names, its chain and its time"}
}

// plain returns the text of an error without words of libraries.
func plain(err error) string {
	return strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), "time is up")
}

// maxBody is how much of a body is read, in bytes.
const maxBody = 16 << 20

// send sends a request with the headers of the user. It returns the response once its head is there.
func (r *run) send(ctx context.Context, method, address, body string, header map[string]string) (*http.Response, error) {
	return r.sendWith(ctx, r.Header, method, address, body, header)
}

// sendWith is send with the headers of all, which are not for every host, and those of this request.
func (r *run) sendWith(ctx context.Context, all http.Header, method, address, body string, header map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil { // it quotes the address
		return nil, &fault{"the server names an address that is no URL", "see its log"}
	}
	for name, values := range all {
		request.Header[name] = values
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	sent := false
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent = true }}))
	response, err := r.client.Do(request)
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	switch {
	case err == nil:
		return response, nil
	case strings.Contains(err.Error(), "failed to parse Location header"): // which it quotes
		return nil, &fault{"the server leads to what is no URL", "check the path of the URL, and the proxy"}
	case strings.Contains(err.Error(), "HTTP response to HTTPS"):
		return nil, wrongTLS(tls.RecordHeaderError{})
	case errors.Is(err, context.DeadlineExceeded):
		return nil, err
	case sent && (errors.Is(err, io.EOF) || strings.Contains(err.Error(), "malformed HTTP response") || strings.Contains(err.Error(), "connection reset")):
		return nil, &fault{"what listens there does not answer HTTP", "check scheme and port of the URL: TLS needs https://"}
	}
	return nil, &fault{plain(err), "see whether the server runs, and its log"}
}

// resourceMetadata is where a 401 says how to get a token (RFC 9728).
var resourceMetadata = regexp.MustCompile(`resource_metadata="([^"]+)"`)

// refused returns the fault of a response whose status any route may have, nil if it has none.
func (r *run) refused(ctx context.Context, response *http.Response) error {
	status := fmt.Sprintf("HTTP %d", response.StatusCode)
	if response.StatusCode >= 300 {
		if text := excerpt(response.Body); text != "" {
			status += ": " + text
		}
	}
	lower := strings.ToLower(status)
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized:
		what := status
		if found := resourceMetadata.FindStringSubmatch(response.Header.Get("WWW-Authenticate")); found != nil {
			what += "; " + r.metadata(ctx, found[1])
		}
		if r.Header.Get("Authorization") != "" {
			return &fault{what, "the token is not accepted: get another one"}
		}
		return &fault{what, "give a token: --header 'Authorization: Bearer TOKEN', in the client as its headers"}
	case code == http.StatusForbidden && strings.Contains(lower, "origin"):
		return &fault{status, "allow the page: --allowed-origins ORIGIN"}
	case code == http.StatusForbidden && strings.Contains(lower, "host"), code == http.StatusMisdirectedRequest:
		return &fault{status, "allow the name: --allowed-hosts " + r.at.Hostname() + "; or have the proxy pass the Host that the server expects"}
	case code == http.StatusForbidden:
		return &fault{status, "use a token or an address that is allowed"}
	case code >= 300 && code < 400:
		to, err := response.Location()
		if err != nil {
			return &fault{status, "have the server answer itself: few clients follow a redirect of a POST"}
		}
		return &fault{fmt.Sprintf("HTTP %d leads to %s", code, place(to.String())), "use that URL in the client: few follow a redirect of a POST"}
	case code == http.StatusTooManyRequests:
		return &fault{status, "wait: a limit of the server or of a proxy is reached"}
	case code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		return &fault{status, "the proxy does not reach the server: start it, and check the address in the proxy"}
	case code == http.StatusServiceUnavailable:
		return &fault{status, "the server is full, stops, or is not there: see its log"}
	case code >= 500:
		return &fault{status, "see the log of the server"}
	case strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") && code < 300:
		return &fault{"there is a web page", "check the path, such as /mcp; a login page of a proxy has to let clients pass"}
	}
	return nil
}

// metadata says what the metadata of a protected resource say. The server has named their address, which
// may be of another host: it gets no header of the user.
func (r *run) metadata(ctx context.Context, address string) string {
	unread := "the metadata for logging in, " + address + ", cannot be read"
	response, err := r.sendWith(ctx, nil, http.MethodGet, address, "", nil)
	if err != nil {
		return unread
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return unread
	}
	issuers := member(readAll(response.Body), "authorization_servers")
	return "who logs in at " + strings.Trim(string(issuers), "[]") + " gets a token"
}

// excerpt returns the beginning of a body on one line.
func excerpt(body io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(body, 4<<10))
	text := strings.Join(strings.Fields(string(data)), " ")
	if strings.HasPrefix(text, "<") {
		return ""
	}
	if message := member(data, "error", "message"); len(message) > 0 {
		text = strings.Trim(string(message), `"`)
	}
	text = withoutSecrets(text) // before it is cut
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "")
	}
	return text
}

// noMCP says where MCP is, if it is not at the URL.
func (r *run) noMCP(ctx context.Context) error {
	for _, path := range []string{"/mcp", "/sse", "/mcp/", "/"} {
		other := *r.at
		other.Path = path
		if other.Path == r.at.Path {
			continue
		}
		response, err := r.send(ctx, http.MethodPost, other.String(), initialize, map[string]string{"Accept": "application/json, text/event-stream"})
		if err != nil {
			break
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return &fault{"no transport is served at " + strings.TrimPrefix(place(r.URL), r.at.Scheme+"://"+r.at.Host), "use " + place(other.String())}
		}
	}
	return &fault{"no transport of MCP is served at " + r.at.String(), "check the path, such as /mcp or /sse; behind a proxy, the prefix that it adds or strips"}
}
