package statelessserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// discoverTimeout is how long a server may take to say what it speaks. A server
	// that knows the method answers at once.
	discoverTimeout = 10 * time.Second
	// probeTimeout is that for a server of which nothing is known: a client waits, and an old
	// server may ignore an unknown method.
	probeTimeout = 2 * time.Second
	discoverID   = jsonrpc.ID("1")
)

// ErrNoEvidence is an error of [Probe] that tells nothing of what the server speaks: servers of older
// revisions answer a method that they do not know in any way.
var ErrNoEvidence = errors.New("it is not known what the server speaks")

// noEvidence is an ErrNoEvidence. It is the text of what happened.
type noEvidence struct{ error }

func (noEvidence) Is(target error) bool { return target == ErrNoEvidence }

func (e noEvidence) Unwrap() error { return e.error }

// errSilent is that of a server that did not answer in time: an old server may ignore an unknown method, any
// server may be slow.
var errSilent = noEvidence{errors.New("no answer to " + mcp.MethodDiscover)}

// Probe is [Discover] for a server of which nothing is known: it waits 2 s, and if the server did not answer in
// that time, or with a failure that may be for the method alone, its error is [ErrNoEvidence].
func Probe(ctx context.Context, x *exchange.Endpoint) (json.RawMessage, error) {
	return discover(ctx, x, probeTimeout)
}

// Discover asks the server whether it speaks MCP 2026-07-28, and returns its result of
// server/discover if so. It returns nil without an error for a server that needs a
// handshake, or is none, also after 10 s of silence. It fails when the server cannot
// be reached, fails, refuses access, or speaks a later version only.
func Discover(ctx context.Context, x *exchange.Endpoint) (json.RawMessage, error) {
	found, err := discover(ctx, x, discoverTimeout)
	if errors.Is(err, errSilent) {
		return nil, nil
	}
	return found, err
}

func discover(ctx context.Context, x *exchange.Endpoint, timeout time.Duration) (json.RawMessage, error) {
	asked, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := x.Do(asked, http.MethodPost, discoverRequest(), http.Header{
		stateless.HeaderVersion: {mcp.VersionStateless}, stateless.HeaderMethod: {mcp.MethodDiscover},
	})
	switch {
	case err != nil && asked.Err() != nil && ctx.Err() == nil:
		return nil, errSilent
	case err != nil && ctx.Err() == nil && !exchange.Unreached(err):
		return nil, noEvidence{err}
	case err != nil:
		return nil, err // it says what was asked
	}
	defer resp.Body.Close()
	if err := x.CheckAccess(resp); err != nil {
		if resp.StatusCode == http.StatusForbidden { // an old server may want a scope for what it does not know
			return nil, noEvidence{err}
		}
		return nil, err
	}
	m := discovered(x, resp)
	switch {
	case m == nil && exchange.IsRedirect(resp):
		return nil, fmt.Errorf("%s: %s", x.Place(), x.Redirected(resp).Message)
	case m == nil && saysNothing(resp):
		return nil, noEvidence{fmt.Errorf("%s: %s", x.Place(), x.StatusError(resp, nil).Message)}
	case m != nil && supports(m.Result()):
		return m.Result(), nil
	case m != nil && m.Error() != nil:
		err = discoverError(x, m.Error())
	}
	forget(asked, x, resp)
	return nil, err
}

func discoverRequest() []byte {
	// Neither call can fail: strings have a JSON form, and the form of a map is an object.
	info, _ := json.Marshal(map[string]string{"name": "mcp-sse", "version": buildinfo.Read().Version})
	params, _ := stateless.Meta{ClientInfo: info}.Into(nil)
	return jsonrpc.NewRequest(discoverID, mcp.MethodDiscover, params)
}

// discovered returns the JSON-RPC response to the request, nil for none, or if it
// cannot be read.
func discovered(x *exchange.Endpoint, resp *http.Response) *jsonrpc.Message {
	if resp.StatusCode >= 300 {
		m, _ := exchange.ErrorResponse(resp, discoverID)
		return m
	}
	r := exchange.Reader{Endpoint: x, ID: discoverID}
	m, _ := r.Read(resp)
	return m
}

// saysNothing reports whether a response is a failure, and so no evidence of what the server
// speaks.
func saysNothing(resp *http.Response) bool {
	code := resp.StatusCode
	return code >= 500 && code != http.StatusNotImplemented || code == http.StatusTooManyRequests
}

// modern are the codes of errors that only servers of MCP 2026-07-28 or later have.
var modern = []int{mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion}

// KnowsNoInitialize reports whether an error with which a server answers initialize says that it has no handshake.
func KnowsNoInitialize(code int) bool {
	return code == jsonrpc.CodeMethodNotFound || slices.Contains(modern, code)
}

// discoverError returns an error for a server that speaks MCP 2026-07-28 or later and
// refuses server/discover. It returns nil for any other error of the server, and for a
// server that supports versions with a handshake.
func discoverError(x *exchange.Endpoint, raw json.RawMessage) error {
	var e jsonrpc.Error
	_ = json.Unmarshal(raw, &e) // leaves code 0
	data, _ := rawjson.Member(raw, "data")
	if !slices.Contains(modern, e.Code) || slices.ContainsFunc(stringList(data, "supported"), mcp.HasInitialize) {
		return nil
	}
	return fmt.Errorf("%s: the server refused server/discover: %.200s (code %d)", x.Place(), e.Message,
		e.Code)
}

// supports reports whether a result of server/discover names this version.
func supports(result json.RawMessage) bool {
	return slices.Contains(stringList(result, "supportedVersions"), mcp.VersionStateless)
}

// stringList returns a member that is a list of strings.
func stringList(obj json.RawMessage, member string) []string {
	raw, _ := rawjson.Member(obj, member)
	var all []string
	_ = json.Unmarshal(raw, &all)
	return all
}

// forget ends a session that the server has opened for server/discover.
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
