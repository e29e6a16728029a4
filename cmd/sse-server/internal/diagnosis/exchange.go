package diagnosis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/unreached"
)

// maxBody is how much of a body is read, in bytes.
const maxBody = 16 << 20

// send sends a request with the headers of the user, and others. It returns the response once its head is
// there.
func (r *run) send(
	ctx context.Context, method, address, body string, header map[string]string,
) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil { // it quotes the address
		return nil, &fault{"the server names an address that is not a URL", "see its log"}
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	r.asks.Store(true)
	response, err := r.client.Do(request)
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	switch {
	case err == nil:
		return response, nil
	case strings.Contains(err.Error(), "failed to parse Location header"): // which it quotes
		return nil, &fault{"the server leads to what is not a URL", "check the path of the URL, and the proxy"}
	case strings.Contains(err.Error(), "HTTP response to HTTPS"):
		return nil, noTLS
	case errors.Is(err, context.DeadlineExceeded):
		return nil, err
	case closedByPeer(err):
		return nil, &fault{"the connection is closed without an answer", "check the port, and see the log of what " +
			"listens there: it may speak no HTTP, or refuse the Host or the path"}
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return nil, &fault{"what listens there does not answer HTTP", "check the port"}
	}
	return nil, unanswered(err)
}

// CheckProxy is what to do about a proxy that is not reached.
const CheckProxy = "check the proxy that HTTP_PROXY or HTTPS_PROXY names; NO_PROXY has the names that need none"

// unanswered returns the fault of a request that got no answer.
func unanswered(err error) *fault {
	remedy := "see whether the server runs, and its log"
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		remedy = CheckProxy
	}
	return &fault{cmp.Or(unreached.Why(err), causeOf(err)), remedy}
}

// post sends a message that gets no answer. That it does not arrive, the next step shows.
func (r *run) post(ctx context.Context, address string, body []byte, header map[string]string) {
	if response, err := r.send(ctx, http.MethodPost, address, string(body), header); err == nil {
		response.Body.Close()
	}
}

// statusOf returns the status of a response, and what a refusal says.
func (r *run) statusOf(response *http.Response) string {
	status := fmt.Sprintf("HTTP %d", response.StatusCode)
	if response.StatusCode >= 300 {
		if text := r.excerpt(response.Body); text != "" {
			status += ": " + text
		}
	}
	return status
}

// refused returns the fault of a response whose status any route may have, nil if it has none.
func (r *run) refused(response *http.Response) error {
	status := r.statusOf(response)
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden &&
		challengeIn(response).Params["error"] == insufficientScope:
		return r.unauthorized(status, response)
	case code == http.StatusForbidden && saysOrigin.MatchString(status):
		return &fault{status, "allow the page: --allowed-origins ORIGIN"}
	case (code == http.StatusForbidden || code == http.StatusBadRequest) && saysHost.MatchString(status),
		code == http.StatusMisdirectedRequest:
		return &fault{status, r.allowHost()}
	case code == http.StatusForbidden:
		return &fault{status, "use a token or an address that is allowed"}
	case code >= 300 && code < 400:
		to, err := response.Location()
		if err != nil {
			return &fault{status, "have the server answer itself: few clients follow a redirect of a POST"}
		}
		return &fault{fmt.Sprintf("HTTP %d leads to %s", code, publicURL(to.String())),
			"use that URL in the client: few follow a redirect of a POST"}
	case code == http.StatusTooManyRequests:
		return &fault{status, "wait: a limit of the server or of a proxy is reached"}
	case code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		return &fault{status, "the proxy does not reach the server: start it, and check the address in the proxy"}
	case code == http.StatusServiceUnavailable:
		return &fault{status, "the server is full, stops, or is not there: see its log"}
	case code >= 500:
		return &fault{status, "see the log of the server"}
	case strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") && code < 300:
		return &fault{"there is a web page",
			"check the path, such as /mcp; a login page of a proxy has to let clients pass"}
	}
	return nil
}

// excerpt returns the beginning of a body on one line.
func (r *run) excerpt(body io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(body, 4<<10))
	text := strings.Join(strings.Fields(string(data)), " ")
	if strings.HasPrefix(text, "<") {
		return ""
	}
	if failure := failureIn(data); failure != "" {
		text = failure
	}
	return cut(r.withoutSecrets(text), 300)
}

// readAll reads a body. Its error is a *fault: clients wait for the end of a body before they read it.
func readAll(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &fault{fmt.Sprintf("the body of the answer does not end: %d bytes of it came in time", len(data)),
			"see the log of the server, and whether a proxy holds the rest back"}
	case err != nil:
		return nil, &fault{fmt.Sprintf("the body of the answer is cut off after %d bytes: %s", len(data), causeOf(err)),
			"see the log of the server, and whether a proxy cuts answers"}
	case len(data) > maxBody:
		return nil, &fault{fmt.Sprintf("the body of the answer is longer than %d MB", maxBody>>20),
			"see the log of the server"}
	}
	return data, nil
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

// failureIn returns the message of the error in a response, on one line; empty if it has none.
func failureIn(data []byte) string {
	message := member(data, "error", "message")
	return strings.Join(strings.Fields(cmp.Or(text(message), string(message))), " ")
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
