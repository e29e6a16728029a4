// Package completions has the completions of sse-server and docsearch for shells. Packages install the
// same files.
package completions

import _ "embed"

// Scripts are the completions by the name of the shell.
var Scripts = map[string]string{"bash": bash, "zsh": zsh, "fish": fish}

//go:embed mcp-sse.bash
var bash string

//go:embed _mcp-sse
var zsh string

//go:embed mcp-sse.fish
var fish string
