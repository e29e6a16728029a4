package docstest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// onNPM says that the package mcp-sse is published on npm. CONTRIBUTING.md says when to set it.
const onNPM = false

// startsByNPM matches a command that gets the package from npm.
var startsByNPM = regexp.MustCompile(`\b(npx|npm exec|npm x|bunx|pnpm dlx)\s+(-\S+\s+)*"?mcp-sse\b|` +
	`\b(npm|pnpm|bun) (install|i|add) (-\S+\s+)*mcp-sse\b`)

// texts are endings of files that people or programs print.
var texts = []string{".go", ".md", ".txt", ".tmpl", ".js", ".mjs", ".html", ".css", ".yaml", ".yml", ".json", ".sh"}

// Before the package is published anybody could take its name, so no page and no program tells people to run it. After
// that README does.
func TestNPMPackageIsNamedOncePublished(t *testing.T) {
	var naming []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"node_modules", ".git", "testdata", "bin"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go") || !slices.Contains(texts, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if startsByNPM.Match(text) {
			naming = append(naming, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !onNPM && len(naming) > 0 {
		t.Errorf("these say how to start the package, which is not published: %q", naming)
	}
	if onNPM && !slices.Contains(naming, root+"/README.md") {
		t.Error("README.md does not say that npx -y mcp-sse starts the program")
	}
}

func TestCommandsThatGetThePackageAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"npx -y mcp-sse -- notes": true, "npx --yes mcp-sse@1.2.3": true, `npx -y "mcp-sse"`: true,
		"npm install -g mcp-sse": true, "npx ./mcp-sse-1.2.3.tgz": false, "github.com/mcp-sse/mcp-sse": false,
		"npx -y server, with mcp-sse": false,
	} {
		if startsByNPM.MatchString(text) != want {
			t.Errorf("%s: found: %v", text, !want)
		}
	}
}
