package stateless

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

const (
	// discoverTimeout is how long a server may take to say what it speaks. One that
	// knows the question answers at once.
	discoverTimeout = 10 * time.Second
	discoverID      = jsonrpc.ID("1")
)

// Discover asks the server whether it speaks MCP 2026-07-28, and returns the
// result if so. nil without an error is a server that needs a handshake, or none.
func Discover(ctx context.Context, x *exchange.Endpoint) (json.RawMessage, error) {
	asked, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	resp, err := x.Do(asked, http.MethodPost, discoverRequest(), http.Header{
		exchange.HeaderVersion: {mcp.VersionStateless}, headerMethod: {mcp.MethodDiscover},
	})
	switch {
	case err != nil && asked.Err() != nil && ctx.Err() == nil:
		return nil, nil // silence is what an old server may have for an unknown method
	case err != nil:
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer resp.Body.Close()
	m := discovered(x, resp)
	switch {
	case exchange.RefusesAccess(resp):
		return nil, exchange.NewAccessError(x, resp)
	case m == nil && saysNothing(resp):
		return nil, fmt.Errorf("connect to %s: %s", x.Place(), exchange.StatusError(resp, nil).Message)
	case m != nil && m.Result() != nil && slices.Contains(versions(m.Result(), "supportedVersions"), mcp.VersionStateless):
		return m.Result(), nil
	case m != nil && m.Error() != nil:
		err = discoverError(x, m.Error())
	}
	forget(asked, x, resp)
	return nil, err
}

func discoverRequest() []byte {
	info, _ := json.Marshal(map[string]string{"name": "mcp-sse", "version": buildinfo.Read().Version}) // strings have a JSON form
	params, _ := requestMeta{clientInfo: info}.into(nil)                                               // which are an object
	return jsonrpc.NewRequest(discoverID, mcp.MethodDiscover, params)
}

// discovered returns the response to the request, nil when there is none.
func discovered(x *exchange.Endpoint, resp *http.Response) (found *jsonrpc.Message) {
	_ = x.Read(resp, func(in exchange.Incoming) error { // what cannot be read says nothing
		m, err := jsonrpc.Parse(in.Data)
		if err == nil && m.Kind == jsonrpc.Response && (m.ID == discoverID || m.Error() != nil) {
			found = m
			return exchange.ErrAnswered
		}
		return nil
	})
	return found
}

// saysNothing reports whether a response is no evidence of what a server speaks: it
// is a failure or a redirect.
func saysNothing(resp *http.Response) bool {
	code := resp.StatusCode
	return code >= 500 && code != http.StatusNotImplemented || code == http.StatusTooManyRequests ||
		code >= 300 && code < 400
}

// discoverError returns the error of a server that speaks MCP 2026-07-28 or later
// and refuses to say more. nil is for any other error, and for a server that names
// versions with a handshake.
func discoverError(x *exchange.Endpoint, raw json.RawMessage) error {
	var e jsonrpc.Error
	if json.Unmarshal(raw, &e) != nil {
		return nil
	}
	switch e.Code {
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability:
	case mcp.CodeUnsupportedVersion:
		data, _ := jsonrpc.Member(raw, "data")
		if slices.ContainsFunc(versions(data, "supported"), func(v string) bool { return v < mcp.VersionStateless }) {
			return nil
		}
	default:
		return nil
	}
	return fmt.Errorf("connect to %s: the server refused server/discover: %.200s (code %d)", x.Place(), e.Message, e.Code)
}

// versions returns a member that is a list of strings.
func versions(obj json.RawMessage, member string) []string {
	raw, _ := jsonrpc.Member(obj, member)
	var all []string
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// forget ends the session that a server has opened for the question alone.
func forget(ctx context.Context, x *exchange.Endpoint, resp *http.Response) {
	id := resp.Header.Get(exchange.HeaderSession)
	if id == "" {
		return
	}
	ended, err := x.Do(ctx, http.MethodDelete, nil, http.Header{exchange.HeaderSession: {id}})
	if err == nil { // else the server's own timeout ends it
		exchange.Discard(ended)
	}
}
