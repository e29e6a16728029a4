package stateless

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// annotation is the member of an input schema that has an argument mirrored in a
// header (MCP 2026-07-28, basic/transports/streamable-http, custom headers).
const annotation = "x-mcp-header"

// paramHeader is an argument of a tool that travels as a header as well.
type paramHeader struct {
	path []string // from the arguments downwards
	name string   // of the header, without headerParam
}

// toolPage is what one answer to tools/list says.
type toolPage struct {
	// result is the answer without the tools that must not be used.
	result json.RawMessage
	// headers are those of each tool that is left; nil for a tool without.
	headers map[string][]paramHeader
	// dropped says why a tool is gone.
	dropped map[string]error
}

// readTools reads the result of a tools/list. What has another form than that
// is returned as it is.
func readTools(result json.RawMessage) toolPage {
	page := toolPage{result: result, headers: make(map[string][]paramHeader)}
	raw, ok := jsonrpc.Member(result, "tools")
	var tools []json.RawMessage
	if !ok || json.Unmarshal(raw, &tools) != nil {
		return page
	}
	kept := make([]json.RawMessage, 0, len(tools))
	for _, tool := range tools {
		member, _ := jsonrpc.Member(tool, "name")
		name, _ := jsonrpc.Text(member)
		schema, _ := jsonrpc.Member(tool, "inputSchema")
		headers, err := schemaHeaders(schema)
		if err != nil {
			if page.dropped == nil {
				page.dropped = make(map[string]error)
			}
			page.dropped[name] = err
			continue
		}
		kept = append(kept, tool)
		page.headers[name] = headers
	}
	if len(kept) < len(tools) {
		list := slices.Concat([]byte("["), bytes.Join(asBytes(kept), []byte(",")), []byte("]"))
		page.result = jsonrpc.ReplaceMember(result, list, "tools")
	}
	return page
}

func asBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// schemaHeaders returns the annotations of an input schema in the order of their
// paths. The error says which one is against the rules.
func schemaHeaders(schema json.RawMessage) ([]paramHeader, error) {
	if !bytes.Contains(schema, []byte(annotation)) {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber() // no number is too large then
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	var w schemaWalk
	if err := w.schema(root, nil, true); err != nil {
		return nil, err
	}
	slices.SortFunc(w.found, func(a, b paramHeader) int { return slices.Compare(a.path, b.path) })
	return w.found, nil
}

// schemaWalk collects the annotations of a schema.
type schemaWalk struct{ found []paramHeader }

// schema walks one schema, or a list of them. Only what is reached through
// properties alone may be annotated.
func (w *schemaWalk) schema(v any, path []string, reachable bool) error {
	if list, ok := v.([]any); ok {
		for _, item := range list {
			if err := w.schema(item, nil, false); err != nil {
				return err
			}
		}
		return nil
	}
	object, _ := v.(map[string]any)
	for key, value := range object {
		var err error
		switch key {
		case annotation:
			err = w.annotation(object, path, reachable)
		case "properties":
			err = w.named(value, path, reachable)
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			err = w.named(value, nil, false)
		case "const", "default", "enum", "examples", "dependentRequired": // values, no schemas
		default:
			err = w.schema(value, nil, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// named walks schemas that have names.
func (w *schemaWalk) named(v any, path []string, reachable bool) error {
	object, _ := v.(map[string]any)
	for name, value := range object {
		if err := w.schema(value, append(slices.Clip(path), name), reachable); err != nil {
			return err
		}
	}
	return nil
}

func (w *schemaWalk) annotation(schema map[string]any, path []string, reachable bool) error {
	name, _ := schema[annotation].(string)
	switch {
	case !reachable || len(path) == 0:
		return errors.New("it stands where no argument is")
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("argument %.64q: %.64q is no header name", strings.Join(path, "."), name)
	case !primitive(schema["type"]):
		return fmt.Errorf("argument %.64q is no string, integer or boolean", strings.Join(path, "."))
	case slices.ContainsFunc(w.found, func(p paramHeader) bool { return strings.EqualFold(p.name, name) }):
		return fmt.Errorf("the header name %.64q stands twice", name)
	}
	w.found = append(w.found, paramHeader{slices.Clone(path), name})
	return nil
}

// primitive reports whether a schema's type is one that fits in a header; null
// beside it does too, because a null is not mirrored.
func primitive(v any) bool {
	if list, ok := v.([]any); ok {
		list = slices.DeleteFunc(slices.Clone(list), func(t any) bool { return t == "null" })
		return len(list) == 1 && primitive(list[0])
	}
	return v == "string" || v == "integer" || v == "boolean"
}

// maxInteger is the largest integer that all JSON parsers agree on.
const maxInteger = 1<<53 - 1

// headerText returns the text of an argument that fits in a header: a string, a
// boolean, or an integer that all JSON parsers agree on.
func headerText(raw json.RawMessage) (string, bool) {
	switch raw[0] {
	case '"':
		return jsonrpc.Text(raw)
	case 't', 'f':
		return string(raw), true
	case '{', '[', 'n':
		return "", false
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return strconv.FormatInt(n, 10), n >= -maxInteger && n <= maxInteger
	}
	f, err := strconv.ParseFloat(string(raw), 64) // 1e3 and 1.0 are integers too
	n := int64(max(min(f, maxInteger), -maxInteger))
	return strconv.FormatInt(n, 10), err == nil && float64(n) == f
}
