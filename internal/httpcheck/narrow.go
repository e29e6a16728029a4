package httpcheck

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// A client narrows the tools that it gets by HeaderTools, or by the parameter of the URL with the name queryTools.
const (
	HeaderTools = "X-Mcp-Tools" // as package net/http writes it
	queryTools  = "tools"
)

// narrowingOf returns what a request says of the tools of its client, in the URL and in the header; nil: nothing. A
// header that the server gets is for the server.
func (f *Checker) narrowingOf(r *http.Request) (inURL, header []string) {
	header = r.Header[HeaderTools]
	if header == nil && !strings.Contains(r.URL.RawQuery, queryTools) { // most requests
		return nil, nil
	}
	isTools := func(name string) bool { return http.CanonicalHeaderKey(name) == HeaderTools }
	if slices.ContainsFunc(f.opts.ForwardHeaders, isTools) || slices.ContainsFunc(f.opts.RequestHeaders, isTools) {
		header = nil
	}
	query, _ := url.ParseQuery(r.URL.RawQuery)
	return query[queryTools], header
}

// Narrow returns how a request narrows the tools of its client; nil: it does not. It refuses what cannot be read.
func (f *Checker) Narrow(r *http.Request) (*selection.Narrowing, *Refusal) {
	return narrow(f.narrowingOf(r))
}

func narrow(inURL, header []string) (*selection.Narrowing, *Refusal) {
	narrowing, err := selection.Narrow(inURL, header)
	if err != nil {
		return nil, Refused(http.StatusBadRequest, metrics.RejectedBadRequest,
			"%s and ?%s= want globs of tools with commas between them: %v", "X-MCP-Tools", queryTools, err)
	}
	return narrowing, nil
}

// CheckNarrow refuses a request of a connection that narrows its tools otherwise than the request that opened it. Its
// body has not been read.
func (f *Checker) CheckNarrow(c *connstate.Connection, r *http.Request) *Refusal {
	inURL, header := f.narrowingOf(r)
	first := c.Client().Narrow
	if first.Repeats(inURL, header) { // a client sends its header with each request
		return nil
	}
	later, refusal := narrow(inURL, header)
	if refusal == nil && first.Differs(later) {
		refusal = Refused(http.StatusBadRequest, metrics.RejectedBadRequest,
			"the tools were chosen when the session began: send the same X-MCP-Tools and ?%s=, or none", queryTools)
	}
	if refusal != nil {
		refusal.Unread = true
	}
	return refusal
}
