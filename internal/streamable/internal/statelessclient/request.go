package statelessclient

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex/sharing"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// request is a client's request, and what its _meta says.
type request struct {
	*jsonrpc.Message
	principal string
	meta      stateless.Meta
	logLevel  sharing.Level   // 0: no log messages
	passed    context.Context // what is passed on of the HTTP request; nil: nothing
}

func refused(status int, e *jsonrpc.Error) *httpcheck.Refusal {
	return httpcheck.RefusedWith(status, metrics.PostInvalidRequest, e)
}

func invalidParams(format string, args ...any) *httpcheck.Refusal {
	return refused(http.StatusBadRequest, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...))
}

func mismatch(format string, args ...any) *httpcheck.Refusal {
	return refused(http.StatusBadRequest, jsonrpc.Errorf(mcp.CodeHeaderMismatch, format, args...))
}

func parseRequest(m *jsonrpc.Message, principal string) (*request, *httpcheck.Refusal) {
	meta, err := stateless.ReadMeta(m.Params())
	if err != nil {
		return nil, invalidParams("%v", err)
	}
	q := &request{Message: m, principal: principal, meta: meta}
	if meta.LogLevel != nil {
		level, _ := rawjson.Text(meta.LogLevel)
		q.logLevel = sharing.ParseLevel(level)
		if q.logLevel == 0 {
			return nil, invalidParams("%q is not a log level", mcp.MetaLogLevel)
		}
	}
	return q, nil
}

func (q *request) declares(names ...string) bool { return mcp.Declares(q.meta.Capabilities, names...) }

// inputResponses returns the answers in a request, by their keys.
func (q *request) inputResponses() (map[string]json.RawMessage, *httpcheck.Refusal) {
	raw, ok := rawjson.Member(q.Params(), "inputResponses")
	if !ok {
		return nil, nil
	}
	var answers map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &answers) != nil {
		return nil, invalidParams("params.inputResponses must be an object")
	}
	for name, answer := range answers {
		if answer[0] != '{' {
			return nil, invalidParams("params.inputResponses: the answer %.32q must be an object", name)
		}
	}
	return answers, nil
}

// checkHeaders compares the headers that repeat parts of a request with these parts. It
// refuses a part that can be read in two ways: the server may read the other one.
func checkHeaders(h http.Header, q *request) *httpcheck.Refusal {
	if member := stateless.NameMember(q.Method); member != "" && q.Param(member).Ambiguous {
		return mismatch("params.%s can be read in two ways", member)
	}
	wanted, err := stateless.Headers(q.meta.Version, q.Method, q.Params())
	if err != nil {
		return invalidParams("%v", err)
	}
	for _, want := range wanted {
		if why := checkHeader(h, want.Name, true, func(value string) bool { return value == want.Value }); why != nil {
			return why
		}
	}
	return nil
}

// checkArgument compares the header that repeats an argument of a tool with it.
func checkArgument(h http.Header, p stateless.Param, q *request) *httpcheck.Refusal {
	if q.Param(append([]string{"arguments"}, p.Path...)...).Ambiguous {
		return mismatch("argument %.64s can be read in two ways", strings.Join(p.Path, "."))
	}
	raw, there := p.Argument(q.Params())
	return checkHeader(h, stateless.HeaderParam+p.Name, there, func(value string) bool {
		want, ok := stateless.Text(raw)
		return ok && (value == want || sameNumber(value, want, raw))
	})
}

// checkHeader checks a header that repeats a part of the body, if that is there. Several are
// refused: what is between client and server may read another one.
func checkHeader(h http.Header, name string, there bool, repeats func(value string) bool) *httpcheck.Refusal {
	values := h.Values(name)
	switch {
	case len(values) > 1:
		return mismatch("header %.64s is there %d times", name, len(values))
	case !there && len(values) == 0:
		return nil
	case !there:
		return mismatch("header %.64s is for an argument that is not there", name)
	case len(values) == 0:
		return mismatch("header %.64s is missing", name)
	}
	value, ok := stateless.Decode(strings.Trim(values[0], " \t"))
	switch {
	case !ok:
		return mismatch("header %.64s is not valid base64", name)
	case !repeats(value):
		return mismatch("header %.64s is not what the body says", name)
	}
	return nil
}

// sameNumber reports whether a header says the number raw, whose text is want: numbers may
// be written in several ways.
func sameNumber(got, want string, raw json.RawMessage) bool {
	if bytes.ContainsRune([]byte(`"tf`), rune(raw[0])) || !json.Valid([]byte(got)) || got[0] == '"' {
		return false
	}
	text, ok := stateless.Text(json.RawMessage(got))
	return ok && text == want
}
