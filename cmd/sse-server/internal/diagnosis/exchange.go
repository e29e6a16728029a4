package diagnosis

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
)

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
	var sent atomic.Bool
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent.Store(true) }}))
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
	case sent.Load() && (errors.Is(err, io.EOF) || strings.Contains(err.Error(), "malformed HTTP response") || strings.Contains(err.Error(), "connection reset")):
		return nil, &fault{"what listens there does not answer HTTP", "check scheme and port of the URL: TLS needs https://"}
	}
	return nil, &fault{plain(err), "see whether the server runs, and its log"}
}

// post sends a message that gets no answer. That it does not arrive, the next step shows.
func (r *run) post(ctx context.Context, address string, body []byte, header map[string]string) {
	if response, err := r.send(ctx, http.MethodPost, address, string(body), header); err == nil {
		response.Body.Close()
	}
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
