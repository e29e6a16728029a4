package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed homebrew/sse-server.rb
var formula string

// The systems that Homebrew runs on, and their processors, in its words and in those of Go.
var (
	brewSystems    = [][2]string{{"macos", "darwin"}, {"linux", "linux"}}
	brewProcessors = [][2]string{{"arm", "arm64"}, {"intel", "amd64"}}
)

type brewSystem struct {
	Name     string
	Archives []brewArchive
}

type brewArchive struct{ Processor, URL, Checksum string }

// writeFormula writes the formula, which installs the archives of the release. Systems that the release has no
// archive for are left out.
func writeFormula(made *release, folder string) error {
	var systems []brewSystem
	for _, system := range brewSystems {
		s := brewSystem{Name: system[0]}
		for _, processor := range brewProcessors {
			name := made.archive(system[1], processor[1])
			if sum := made.checksums[name]; sum != "" {
				url := fmt.Sprintf("https://github.com/mcp-sse/mcp-sse/releases/download/v%s/%s", made.version, name)
				s.Archives = append(s.Archives, brewArchive{processor[0], url, sum})
			}
		}
		if len(s.Archives) > 0 {
			systems = append(systems, s)
		}
	}
	if len(systems) == 0 {
		return fmt.Errorf("SHA256SUMS has no archive such as %s", made.archive("linux", "amd64"))
	}
	var text bytes.Buffer
	data := struct {
		Version string
		Systems []brewSystem
	}{made.version, systems}
	if err := template.Must(template.New(program).Parse(formula)).Execute(&text, data); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, program+".rb"), text.Bytes(), 0o644)
}
