package diagnosis

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// unaddressed is a message of no session. A server need not do anything for it, so the first request is
// that.
const unaddressed = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`

// first is the answer to the first request.
type first struct {
	http.Response
	body []byte
}

// isAnswered reports whether the first request has an answer.
func (r *run) isAnswered() bool { return r.first.StatusCode != 0 }

// again returns the response with its body unread.
func (f *first) again() *http.Response {
	response := f.Response
	response.Body = io.NopCloser(bytes.NewReader(f.body))
	return &response
}

// asksForTLS finds what servers answer to plain HTTP at a port with TLS.
var asksForTLS = regexp.MustCompile(`(?i)\b(https|ssl|tls)\b`)

// speak sends the first request, and looks whether HTTP comes back.
func (r *run) speak(ctx context.Context) (string, error) {
	most, cancel := r.most(ctx)
	defer cancel()
	mayNeedTLS := r.isDirect() && r.at.Scheme == "http"
	response, err := r.send(most, http.MethodPost, r.URL, unaddressed, anyAnswer)
	switch {
	case err == nil:
	case mayNeedTLS && r.speaksTLS(ctx):
		return "", needsTLS
	case ctx.Err() == nil && most.Err() != nil: // some servers do so, and answer initialize
		return "", missing("a message without a session is not answered; the steps below show whether others are")
	default:
		return "", err
	}
	defer response.Body.Close()
	r.first.Response = *response
	if response.StatusCode >= http.StatusMultipleChoices { // else it may be a stream, which does not end
		r.first.body, _ = io.ReadAll(io.LimitReader(response.Body, 64<<10))
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if mayNeedTLS && response.StatusCode == http.StatusBadRequest && asksForTLS.Match(r.first.body) &&
		r.speaksTLS(ctx) {
		return "", needsTLS
	}
	detail := response.Proto + " is spoken there"
	if by := response.Header.Get("Server"); by != "" {
		detail += ", by " + by
	}
	return detail, nil
}

// saysHost finds what servers answer that do not take a Host.
var saysHost = regexp.MustCompile(`(?i)\bhost`)

func (r *run) allowHost() string {
	return "allow the name: --allowed-hosts " + r.at.Hostname() +
		"; or have the proxy pass the Host that the server expects"
}

// isHostServed says whether the first request was refused for its Host. If it was refused for a reason
// that nobody tells, another Host shows whether it was that.
func (r *run) isHostServed(ctx context.Context) (string, error) {
	served := "requests for " + r.at.Host + " are not refused for that name"
	switch code := r.first.StatusCode; {
	case code == http.StatusMisdirectedRequest, (code == http.StatusForbidden || code == http.StatusBadRequest) &&
		saysHost.Match(r.first.body):
		return "", r.refused(r.first.again())
	case code != http.StatusForbidden || len(r.first.Header.Values("WWW-Authenticate")) > 0:
		return served, nil
	}
	local := "localhost"
	if port := r.at.Port(); port != "" {
		local += ":" + port
	}
	response, err := r.send(ctx, http.MethodPost, r.URL, unaddressed, anyAnswerWith("Host", local))
	if err != nil {
		return served, nil
	}
	defer response.Body.Close()
	if !isOfServer(response) {
		return served, nil
	}
	return "", &fault{fmt.Sprintf("HTTP %d for %s, and %d for %s", r.first.StatusCode, r.at.Host, response.StatusCode,
		local), r.allowHost()}
}

// isOfServer reports whether the first request has reached an MCP server, which may have refused it for
// want of a session. A proxy answers a Host that it does not know in its own way.
func isOfServer(response *http.Response) bool {
	isJSON := strings.HasPrefix(response.Header.Get("Content-Type"), "application/json")
	return response.StatusCode < 300 || response.StatusCode == http.StatusBadRequest && isJSON
}

// isOriginServed sends the first request once more as the browser would for a page of the Origin. Without
// one, it says whether the first request was refused for the want of it.
func (r *run) isOriginServed(ctx context.Context) (string, error) {
	if r.Origin == "" {
		if r.first.StatusCode == http.StatusForbidden && saysOrigin.Match(r.first.body) {
			return "", &fault{r.statusOf(r.first.again()), "let requests pass that have no Origin: programs send none"}
		}
		return "requests without one, as programs send them, are not refused", nil
	}
	response, err := r.send(ctx, http.MethodPost, r.URL, unaddressed, anyAnswerWith("Origin", r.Origin))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != r.first.StatusCode && response.StatusCode >= 400 {
		return "", &fault{r.statusOf(response), "allow the page: --allowed-origins " + r.Origin}
	}
	return "a POST of a page of " + r.Origin + " is not refused", nil
}

// saysOrigin finds what servers answer that do not take an Origin.
var saysOrigin = regexp.MustCompile(`(?i)\borigin`)

func (r *run) hasNoTransport() bool {
	return !r.worked(streamableInitialize) && r.results[sseEndpoint] == Missing
}

// noMCP says where MCP is, if it is not at the URL.
func (r *run) noMCP(ctx context.Context) (string, error) {
	for _, path := range []string{"/mcp", "/sse", "/mcp/", "/"} {
		other := *r.at
		other.Path = path
		if other.Path == r.at.Path {
			continue
		}
		response, err := r.send(ctx, http.MethodPost, other.String(), initialize, anyAnswer)
		if err != nil {
			break
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return "", &fault{"no transport is served at " + cmp.Or(strings.TrimPrefix(publicURL(r.URL),
				r.at.Scheme+"://"+r.at.Host), "/"), "use " + publicURL(other.String())}
		}
	}
	remedy := "check the path, such as /mcp or /sse; behind a proxy, the prefix that it adds or strips"
	if paths := servedPaths.FindSubmatch(r.first.body); paths != nil {
		remedy = "take one of the paths that the server names: " + string(paths[1])
	}
	return "", &fault{"no transport of MCP is served at " + r.at.String(), remedy}
}

// servedPaths finds the paths in what a gateway answers at any other.
var servedPaths = regexp.MustCompile(`no such route: [^/"]*(/[\w./~-]+(?:, /[\w./~-]+)*)`)

func (r *run) isForPage() bool { return r.Origin != "" }

// cors tries what a browser does for a page of another origin: it asks first, and then lets the page read
// an answer that says so.
func (r *run) cors(ctx context.Context) (string, error) {
	switch {
	case r.results[originServed] == Failed:
		return "", untried("the Origin was refused")
	case !r.worked(streamableCall) && !r.worked(sseCall):
		return "", noCall
	case strings.EqualFold(r.Origin, r.at.Scheme+"://"+r.at.Host):
		return "a page of the server itself needs none", nil
	}
	remedy := "allow the page: --allowed-origins " + r.Origin
	response, err := r.send(ctx, http.MethodOptions, r.URL, "", map[string]string{
		"Origin": r.Origin, "Access-Control-Request-Method": http.MethodPost,
		"Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version,mcp-session-id",
	})
	if err != nil {
		return "", err
	}
	response.Body.Close()
	headers := strings.ToLower(response.Header.Get("Access-Control-Allow-Headers"))
	switch {
	case response.StatusCode >= 300:
		return "", &fault{fmt.Sprintf("HTTP %d for the preflight", response.StatusCode), remedy}
	case !r.mayRead(response):
		return "", &fault{fmt.Sprintf("the origin allowed is %q", response.Header.Get("Access-Control-Allow-Origin")),
			remedy}
	case headers != "*" && (!strings.Contains(headers, "content-type") || !strings.Contains(headers, "mcp-session-id")):
		return "", &fault{fmt.Sprintf("the headers allowed are %q", headers),
			"have the server or the proxy allow the headers of MCP"}
	}
	if r.worked(streamableCall) {
		err = r.postOfPage(ctx, remedy)
	} else {
		err = r.streamOfPage(ctx, remedy)
	}
	return "allowed for " + r.Origin, err
}

// mayRead reports whether the browser lets the page read a response.
func (r *run) mayRead(response *http.Response) bool {
	allowed := response.Header.Get("Access-Control-Allow-Origin")
	return allowed == r.Origin || allowed == "*"
}

// postOfPage opens a session as the page would, and ends it.
func (r *run) postOfPage(ctx context.Context, remedy string) error {
	response, err := r.send(ctx, http.MethodPost, r.URL, initialize, anyAnswerWith("Origin", r.Origin))
	if err != nil {
		return err
	}
	response.Body.Close()
	s := &openSession{id: response.Header.Get("Mcp-Session-Id"), version: r.streamable.session.version}
	if s.id != "" {
		if response, err := r.send(ctx, http.MethodDelete, r.URL, "", s.header()); err == nil {
			response.Body.Close()
		}
	}
	exposed := strings.ToLower(strings.Join(response.Header.Values("Access-Control-Expose-Headers"), ","))
	switch {
	case !r.mayRead(response):
		return &fault{"the preflight is allowed, and the answer to a POST has no Access-Control-Allow-Origin for " +
			r.Origin, remedy}
	case s.id != "" && exposed != "*" && !strings.Contains(exposed, "mcp-session-id"):
		return &fault{"the page cannot read Mcp-Session-Id",
			"have the server, or the proxy, send Access-Control-Expose-Headers: Mcp-Session-Id"}
	}
	return nil
}

// streamOfPage opens a stream of HTTP+SSE as the page would.
func (r *run) streamOfPage(ctx context.Context, remedy string) error {
	response, cancel, err := r.openStream(ctx, map[string]string{"Accept": "text/event-stream", "Origin": r.Origin})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	defer cancel()
	if !r.mayRead(response) {
		return &fault{"the preflight is allowed, and the stream has no Access-Control-Allow-Origin for " + r.Origin,
			remedy}
	}
	return nil
}
