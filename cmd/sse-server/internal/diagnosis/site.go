package diagnosis

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

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
		response, err := r.send(ctx, http.MethodPost, other.String(), initialize, map[string]string{"Accept": "application/json, text/event-stream"})
		if err != nil {
			break
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return "", &fault{"no transport is served at " + strings.TrimPrefix(place(r.URL), r.at.Scheme+"://"+r.at.Host), "use " + place(other.String())}
		}
	}
	return "", &fault{"no transport of MCP is served at " + r.at.String(), "check the path, such as /mcp or /sse; behind a proxy, the prefix that it adds or strips"}
}

func (r *run) isForPage() bool {
	return r.Origin != "" && (r.worked(streamableCall) || r.worked(sseCall))
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
