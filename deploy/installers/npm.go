package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// scope is the organisation on npm whose packages hold the program: nobody else can add one to it.
const scope = "@mcp-sse/"

// The words of Node.js for systems and processors; those that are missing are the same.
var (
	platforms  = map[string]string{"windows": "win32"}
	processors = map[string]string{"amd64": "x64"}
)

var (
	//go:embed npm/mcp-sse.js
	launcher []byte
	// readme has {{.}} for the name of the package: until it is published, no text of the repository says how to
	// start it, because anybody could take the name.
	//
	//go:embed npm/readme.tmpl
	readme string
)

// manifest is a package.json.
type manifest struct {
	Name                 string            `json:"name"`
	Version              string            `json:"version"`
	Description          string            `json:"description"`
	License              string            `json:"license"`
	Homepage             string            `json:"homepage"`
	Repository           repository        `json:"repository"`
	Keywords             []string          `json:"keywords,omitempty"`
	Bin                  map[string]string `json:"bin,omitempty"`
	Engines              map[string]string `json:"engines,omitempty"`
	OptionalDependencies map[string]string `json:"optionalDependencies,omitempty"`
	OS                   []string          `json:"os,omitempty"`
	CPU                  []string          `json:"cpu,omitempty"`
	// PreferUnplugged makes Yarn unpack the package: the system starts no program that is in an archive.
	PreferUnplugged bool `json:"preferUnplugged,omitempty"`
}

type repository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// newManifest returns what all packages have in common. npm proves the origin of a package only if it names the
// repository.
func newManifest(made *release, name, description string) manifest {
	return manifest{
		Name: name, Version: made.version, Description: description, License: "Apache-2.0",
		Homepage:   "https://github.com/mcp-sse/mcp-sse",
		Repository: repository{"git", "git+https://github.com/mcp-sse/mcp-sse.git"},
	}
}

// writeNPM writes a folder for each package. None has a script that runs when it is installed: npm runs those only
// where people allow them.
func writeNPM(made *release, folder string) error {
	dependencies := map[string]string{}
	for _, b := range made.binaries {
		platform, processor := word(platforms, b.system), word(processors, b.arch)
		name := platform + "-" + processor
		dependencies[scope+name] = made.version
		m := newManifest(made, scope+name, "The program sse-server of the package mcp-sse for "+name)
		m.OS, m.CPU, m.PreferUnplugged = []string{platform}, []string{processor}, true
		text := "# " + m.Name + "\n\n" + m.Description + ". Install `mcp-sse`, which takes the right one.\n"
		file := filepath.Join("bin", program)
		if b.system == "windows" {
			file += ".exe"
		}
		content, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		if err := writePackage(filepath.Join(folder, name), m, []byte(text), file, content); err != nil {
			return err
		}
	}
	m := newManifest(made, "mcp-sse", "MCP gateway: serves any MCP server over HTTP+SSE, Streamable HTTP and stdio")
	m.Keywords = []string{"mcp", "model-context-protocol", "gateway", "sse", "streamable-http", "stdio"}
	m.Bin = map[string]string{"mcp-sse": "bin/mcp-sse.js", program: "bin/mcp-sse.js"}
	m.Engines = map[string]string{"node": ">=18"}
	m.OptionalDependencies = dependencies
	text := strings.ReplaceAll(readme, "{{.}}", m.Name)
	return writePackage(filepath.Join(folder, m.Name), m, []byte(text), "bin/mcp-sse.js", launcher)
}

func word(words map[string]string, ofGo string) string {
	if ofNode, ok := words[ofGo]; ok {
		return ofNode
	}
	return ofGo
}

// writePackage writes a package with one file that is started.
func writePackage(folder string, m manifest, readme []byte, file string, content []byte) error {
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return fmt.Errorf("run it in the root of the repository: %w", err)
	}
	var about bytes.Buffer
	written := json.NewEncoder(&about)
	written.SetIndent("", "  ")
	written.SetEscapeHTML(false) // people read it
	if err := written.Encode(m); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(file)), 0o755); err != nil {
		return err
	}
	texts := map[string][]byte{"package.json": about.Bytes(), "README.md": readme, "LICENSE": license}
	for name, data := range texts {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, file), content, 0o755)
}
