package mcpserver

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

const (
	maxQuery    = 2000
	maxTerms    = 32
	maxDocument = 1 << 20
	documentIDs = "^[0-9a-f]{16}$"
)

// schemaFor returns the JSON schema of T with what its Go type does not say.
func schemaFor[T any]() (*jsonschema.Schema, error) {
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[api.Status](): {Type: "string", Enum: []any{api.StatusHealthy, api.StatusIndexing,
			api.StatusDegraded, api.StatusMissing}},
		reflect.TypeFor[api.FoundBy](): {Type: "string", Enum: []any{api.ByWords, api.ByMeaning, api.ByBoth}},
	}})
	if err == nil {
		refine(schema)
	}
	return schema, err
}

// refine adds limits to the properties of an object, at any depth.
func refine(object *jsonschema.Schema) {
	for name, p := range object.Properties {
		if len(p.Types) == 2 && p.Types[0] == "null" {
			p.Type, p.Types = p.Types[1], nil // it is there or left out, never null
		}
		limit(object, name, p)
		refine(p)
		if p.Items != nil {
			refine(p.Items)
		}
	}
}

func limit(object *jsonschema.Schema, name string, p *jsonschema.Schema) {
	bound := func(least, most float64) { p.Minimum, p.Maximum = &least, &most }
	switch name {
	case "min_score", "threshold", "relevance", "wordScore", "meaningScore":
		bound(0, 1)
	case "percent":
		bound(0, 100)
	case "passages_per_document":
		bound(1, 20)
		p.Default = []byte("5")
	case "query":
		p.MinLength, p.MaxLength = new(1), new(maxQuery)
	case "semantic_concepts", "exact_terms":
		p.MaxItems = new(maxTerms)
		p.Items.MinLength, p.Items.MaxLength = new(1), new(maxQuery)
	case "document_id", "documentId":
		p.Pattern = documentIDs
	case "offset":
		p.Minimum = new(0.0)
	case "limit":
		if object.Properties["document_id"] != nil {
			bound(1, maxDocument) // bytes
			p.Default = []byte("65536")
		} else {
			bound(1, 100)
			p.Default = []byte("10")
		}
	}
}
