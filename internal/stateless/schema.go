package stateless

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

const (
	// annotation is the member of an input schema that marks an argument to be mirrored
	// in a header (MCP 2026-07-28, basic/transports/streamable-http, custom headers).
	annotation = "x-mcp-header"
	// MaxParams bounds the mirrored arguments of one tool: a request has no room for more
	// headers.
	MaxParams = 256
)

// Param is an argument of a tool that is mirrored in a header.
type Param struct {
	Path []string // from the arguments down
	Name string   // of the header, without HeaderParam
}

// Params returns the annotations of an input schema in the order of their
// paths. The error says which one breaks a rule.
func Params(schema json.RawMessage) ([]Param, error) {
	if !bytes.Contains(schema, []byte(annotation)) {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber() // takes numbers of any size
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	var w schemaWalk
	if err := w.schema(root, nil, true); err != nil {
		return nil, err
	}
	slices.SortFunc(w.found, func(a, b Param) int { return slices.Compare(a.Path, b.Path) })
	return w.found, nil
}

// schemaWalk collects the annotations of a schema.
type schemaWalk struct{ found []Param }

// schema walks a schema and all in it. Only a schema that properties alone lead to may be
// annotated.
func (w *schemaWalk) schema(v any, path []string, reachable bool) error {
	list, _ := v.([]any)
	for _, item := range list {
		if err := w.schema(item, nil, false); err != nil {
			return err
		}
	}
	object, _ := v.(map[string]any)
	for key, value := range object {
		var err error
		switch key {
		case annotation:
			err = w.annotation(object, path, reachable)
		case "properties":
			properties, _ := value.(map[string]any)
			for name, property := range properties {
				err = cmp.Or(err, w.schema(property, append(slices.Clip(path), name), reachable))
			}
		case "const", "default", "enum", "examples", "dependentRequired": // hold values, not schemas
		default:
			err = w.schema(value, nil, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *schemaWalk) annotation(schema map[string]any, path []string, reachable bool) error {
	name, _ := schema[annotation].(string)
	switch {
	case !reachable || len(path) == 0:
		return errors.New("it marks something that is not an argument")
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("argument %.64q: %.64q is not a header name", strings.Join(path, "."), name)
	case !primitive(schema["type"]):
		return fmt.Errorf("argument %.64q is not a string, integer or boolean", strings.Join(path, "."))
	case len(w.found) >= MaxParams:
		return fmt.Errorf("over %d arguments are mirrored", MaxParams)
	case slices.ContainsFunc(w.found, func(p Param) bool { return strings.EqualFold(p.Name, name) }):
		return fmt.Errorf("the header name %.64q is used twice", name)
	}
	w.found = append(w.found, Param{slices.Clone(path), name})
	return nil
}

// primitive reports whether values of a schema's type fit in a header. The type may
// allow null as well, which is not mirrored.
func primitive(v any) bool {
	if list, ok := v.([]any); ok {
		list = slices.DeleteFunc(slices.Clone(list), func(t any) bool { return t == "null" })
		return len(list) == 1 && primitive(list[0])
	}
	return v == "string" || v == "integer" || v == "boolean"
}

// maxInteger is the largest integer that all JSON parsers agree on.
const maxInteger = 1<<53 - 1

// Text returns the header's text for an argument, and false for one that does
// not fit: it must be a string, a boolean, or an integer up to maxInteger.
func Text(raw json.RawMessage) (string, bool) {
	switch raw[0] {
	case '"':
		return rawjson.Text(raw)
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
