package stateless

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/mirror"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func mismatch(format string, args ...any) *front.Refusal {
	return refused(http.StatusBadRequest, jsonrpc.Errorf(mcp.CodeHeaderMismatch, format, args...))
}

// checkHeaders compares the headers that repeat parts of a request with these parts.
func checkHeaders(h http.Header, q *request) *front.Refusal {
	if why := sameHeader(h, front.HeaderVersion, q.version); why != nil {
		return why
	}
	if why := sameHeader(h, mirror.HeaderMethod, q.Method); why != nil {
		return why
	}
	member := mirror.NameMember(q.Method)
	if member == "" {
		return nil
	}
	raw, _ := jsonrpc.Member(q.Params(), member)
	name, ok := jsonrpc.Text(raw)
	if !ok {
		return invalidParams("params.%s must be a string", member)
	}
	return sameHeader(h, mirror.HeaderName, name)
}

// sameHeader expects exactly one header of that name, with that value.
func sameHeader(h http.Header, name, want string) *front.Refusal {
	got, why := oneHeader(h, name)
	switch {
	case why != nil:
		return why
	case got == nil:
		return mismatch("header %s is missing", name)
	case *got != want:
		return mismatch("header %s is not what the body says", name)
	}
	return nil
}

// oneHeader returns the decoded value of a header, nil for none. Several are refused:
// what is between client and server may read another one.
func oneHeader(h http.Header, name string) (*string, *front.Refusal) {
	values := h.Values(name)
	switch {
	case len(values) == 0:
		return nil, nil
	case len(values) > 1:
		return nil, mismatch("header %.64s is there %d times", name, len(values))
	}
	value, ok := mirror.Decode(strings.Trim(values[0], " \t"))
	if !ok {
		return nil, mismatch("header %.64s is not valid base64", name)
	}
	return &value, nil
}

// checkArguments compares the headers that repeat arguments of a tool with these.
func (l *link) checkArguments(ctx context.Context, h http.Header, q *request) *front.Refusal {
	raw, _ := jsonrpc.Member(q.Params(), "name")
	name, _ := jsonrpc.Text(raw)
	for _, p := range l.mirrored(ctx, name) {
		if why := checkArgument(h, p, q.Params()); why != nil {
			return why
		}
	}
	return nil
}

func checkArgument(h http.Header, p mirror.Param, params json.RawMessage) *front.Refusal {
	name := mirror.HeaderParam + p.Name
	got, why := oneHeader(h, name)
	if why != nil {
		return why
	}
	raw, there := p.Argument(params)
	switch {
	case !there && got == nil:
		return nil
	case !there:
		return mismatch("header %.64s is for an argument that is not there", name)
	case got == nil:
		return mismatch("header %.64s is missing", name)
	}
	if want, ok := mirror.Text(raw); !ok || !sameValue(*got, want, raw) {
		return mismatch("header %.64s is not what the body says", name)
	}
	return nil
}

// sameValue reports whether a header says the value whose text is want. Numbers may be
// written in several ways.
func sameValue(got, want string, raw json.RawMessage) bool {
	if got == want || raw[0] == '"' || raw[0] == 't' || raw[0] == 'f' {
		return got == want
	}
	if !json.Valid([]byte(got)) || got[0] == '"' {
		return false
	}
	text, ok := mirror.Text(json.RawMessage(got))
	return ok && text == want
}
