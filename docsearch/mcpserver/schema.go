package mcpserver

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

const (
	maxLimit        = 100
	defaultLimit    = "10"
	maxQuery        = 2000
	maxTerms        = 32
	maxDocument     = 1 << 20
	defaultDocument = "65536"
	documentIDs     = "^[0-9a-f]{16}$"
)

// schemaFor returns the JSON schema of T with what its Go type does not say.
func schemaFor[T any]() (*jsonschema.Schema, error) {
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[api.Status](): {Type: "string", Enum: []any{api.StatusHealthy, api.StatusIndexing, api.StatusDegraded, api.StatusMissing}},
	}})
	if err != nil {
		return nil, err
	}
	walk(schema, refine)
	return schema, nil
}

// walk calls visit for each property of the schema, at any depth.
func walk(schema *jsonschema.Schema, visit func(name string, property *jsonschema.Schema)) {
	for name, property := range schema.Properties {
		if len(property.Types) == 2 && property.Types[0] == "null" && property.Items != nil {
			property.Type, property.Types = "array", nil // this server leaves arrays out or sends them, never null
		}
		visit(name, property)
		walk(property, visit)
		if property.Items != nil {
			walk(property.Items, visit)
		}
	}
}

// refine adds what holds for all properties of a name, in the input and the output.
func refine(name string, p *jsonschema.Schema) {
	if p.Description == "" {
		p.Description = descriptions[name]
	}
	bound := func(least, most float64) { p.Minimum, p.Maximum = &least, &most }
	switch name {
	case "min_score", "threshold", "relevance":
		bound(0, 1)
	case "percent":
		bound(0, 100)
	case "passages_per_document":
		bound(1, 20)
		p.Default = []byte("3")
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
		refineLimit(p, bound)
	}
}

// refineLimit tells a number of results from a number of bytes by its description.
func refineLimit(p *jsonschema.Schema, bound func(least, most float64)) {
	if p.Description == reflect.TypeFor[documentInput]().Field(2).Tag.Get("jsonschema") {
		bound(1, maxDocument)
		p.Default = []byte(defaultDocument)
		return
	}
	bound(1, maxLimit)
	p.Default = []byte(defaultLimit)
}

// descriptions of properties of the output, whose types package api declares.
var descriptions = map[string]string{
	"results":      "Documents found, best first, each once.",
	"documentName": "Title of the document, or the name of its file.",
	"documentId":   "ID for get_document_data.",
	"folder":       "Path of the folder that it is in.",
	"path":         "Absolute path.",
	"relevance":    "How well it matches, from 0 to 1. A passage that has each word once has about 0.45.",
	"snippet":      "Passage that matches, with **matched words**.",
	"location":     "Where the passage stands in the document.",
	"line":         "First line, from 1.",
	"endLine":      "Last line.",
	"page":         "Page, from 1, of documents with pages.",
	"heading":      "Heading above the passage.",
	"content":      "Whole passage.",
	"morePassages": "Next best passages of the document.",
	"performance":  "How the search was made.",
	"searchTime":   "Milliseconds that the search took.",
	"modelUsed":    "bm25 for a search by words, or hybrid: and the model of the embeddings.",
	"nextCursor":   "Argument cursor for the next results; absent at the end.",
	"warnings":     "What limits the results, in words.",
	"folders":      "Folders that are indexed.",
	"status":       "healthy: completely indexed. indexing: incomplete. degraded: see the warnings. missing: the folder is gone, and what was indexed is still found.",
	"percent":      "How much is indexed.",
	"documents":    "Number of documents.",
	"chunks":       "Number of passages.",
	"textBytes":    "Bytes of text.",
	"indexBytes":   "Bytes of the index on disk.",
	"language":     "Language whose endings of words searches ignore.",
	"formats":      "Formats that are indexed.",
	"maxFileBytes": "Size of the largest file that is indexed.",
	"indexedAt":    "When the folder was last completely indexed.",
	"skipped":      "Number of files that are not indexed, by reason.",
	"warning":      "What is wrong with the folder, in words.",
	"id":           "ID of the document.",
	"name":         "Name.",
	"type":         "Format of the file, such as markdown or pdf.",
	"bytes":        "Size of the file.",
	"modified":     "When the file was changed.",
	"title":        "Title that the document gives itself.",
	"text":         "Text from offset on.",
	"offset":       "Byte of the text at which this part starts.",
	"nextOffset":   "Argument offset for the next part; absent at the end.",
	"version":      "Version of the program.",
	"apiVersion":   "Version of the daemon's API.",
	"pid":          "Process of the daemon.",
	"startedAt":    "When the daemon started.",
	"embeddings":   "Source of semantic vectors; absent if searches are by words alone.",
	"model":        "Name of the model.",
	"lastFailed":   "Why the endpoint fails; absent if it works.",
}
