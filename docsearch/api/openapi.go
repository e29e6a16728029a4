package api

import _ "embed"

// OpenAPI is the OpenAPI 3.0 document of the API, in YAML. The daemon serves it at
// GET /openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte
