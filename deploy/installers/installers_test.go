package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// writeRelease writes what goreleaser leaves of a release for these systems, with its program docsearch too.
func writeRelease(t *testing.T, systems ...string) (dist string) {
	t.Helper()
	dist = t.TempDir()
	write := func(name, text string) {
		ssetest.Must(t, os.WriteFile(filepath.Join(dist, name), []byte(text), 0o600))
	}
	artifact := func(kind, id, path, system, arch string) map[string]any {
		of := map[string]string{"ID": id}
		return map[string]any{"type": kind, "path": path, "goos": system, "goarch": arch, "extra": of}
	}
	artifacts := []map[string]any{
		artifact("Binary", "docsearch", "nowhere", "linux", "amd64"),
		artifact("Archive", program, "nowhere", "linux", "amd64"),
	}
	sums := ""
	for _, system := range systems {
		os, arch, _ := strings.Cut(system, "/")
		file := os + "-" + arch
		write(file, "the program for "+system)
		artifacts = append(artifacts, artifact("Binary", program, filepath.Join(dist, file), os, arch))
		sums += strings.Repeat("0", 60) + arch[:1] + os[:3] + "  sse-server_1.2.3_" + os + "_" + arch + ".tar.gz\n"
	}
	list, err := json.Marshal(artifacts)
	ssetest.Must(t, err)
	write("artifacts.json", string(list))
	write("metadata.json", `{"project_name": "mcp-sse", "tag": "v1.2.3", "version": "1.2.3"}`)
	write("SHA256SUMS", sums)
	return dist
}

// makeAll runs the command in the root of the repository, and returns the folder that it has written.
func makeAll(t *testing.T, dist string) (out string) {
	t.Helper()
	t.Chdir("../..")
	out = t.TempDir()
	ssetest.Must(t, run([]string{dist, out}))
	return out
}

func readAll(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	ssetest.Must(t, err)
	return string(data)
}

// Each system has a package with its program, which npm installs there alone; mcp-sse needs all in this version.
func TestPackagesOfNPM(t *testing.T) {
	npm := filepath.Join(makeAll(t, writeRelease(t, "linux/amd64", "darwin/arm64", "windows/amd64")), "npm")
	var m manifest
	ssetest.Must(t, json.Unmarshal([]byte(readAll(t, npm, "mcp-sse", "package.json")), &m))
	want := map[string]string{
		"@mcp-sse/linux-x64": "1.2.3", "@mcp-sse/darwin-arm64": "1.2.3", "@mcp-sse/win32-x64": "1.2.3",
	}
	if m.Name != "mcp-sse" || m.Version != "1.2.3" || !maps.Equal(m.OptionalDependencies, want) {
		t.Errorf("mcp-sse: %+v", m)
	}
	if text := readAll(t, npm, "mcp-sse", "README.md"); !strings.Contains(text, "\nnpx -y mcp-sse -- npx") {
		t.Errorf("the page of the package: %s", text)
	}
	for _, file := range m.Bin {
		if readAll(t, npm, "mcp-sse", file) != string(launcher) {
			t.Errorf("mcp-sse: %s is not the launcher", file)
		}
	}
	for name, want := range map[string]struct{ os, cpu, file, content string }{
		"linux-x64":    {"linux", "x64", "sse-server", "the program for linux/amd64"},
		"darwin-arm64": {"darwin", "arm64", "sse-server", "the program for darwin/arm64"},
		"win32-x64":    {"win32", "x64", "sse-server.exe", "the program for windows/amd64"},
	} {
		var m manifest
		ssetest.Must(t, json.Unmarshal([]byte(readAll(t, npm, name, "package.json")), &m))
		if m.Name != scope+name || m.Version != "1.2.3" || !slices.Equal(m.OS, []string{want.os}) ||
			!slices.Equal(m.CPU, []string{want.cpu}) || len(m.Bin) > 0 {
			t.Errorf("%s: %+v", name, m)
		}
		if got := readAll(t, npm, name, "bin", want.file); got != want.content {
			t.Errorf("%s has %q", name, got)
		}
		if info, err := os.Stat(filepath.Join(npm, name, "bin", want.file)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s cannot be started: %v, %v", name, info.Mode(), err)
		}
	}
	all, err := filepath.Glob(filepath.Join(npm, "*", "package.json"))
	ssetest.Must(t, err)
	for _, file := range all {
		text := readAll(t, file)
		if strings.Contains(text, `"scripts"`) {
			t.Errorf("%s has scripts, which many do not let run", file)
		}
		if !strings.Contains(text, `"git+https://github.com/mcp-sse/mcp-sse.git"`) {
			t.Errorf("%s does not say where it comes from", file)
		}
	}
	if len(all) != 4 {
		t.Errorf("packages %q", all)
	}
}

// The formula names the archive of each system of Homebrew, with its checksum.
func TestFormula(t *testing.T) {
	out := makeAll(t, writeRelease(t, "linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"))
	formula := readAll(t, out, "homebrew", "sse-server.rb")
	zeros := strings.Repeat("0", 60)
	for _, want := range []string{
		"version \"1.2.3\"\n", `
  on_macos do
    on_arm do
      url "https://github.com/mcp-sse/mcp-sse/releases/download/v1.2.3/sse-server_1.2.3_darwin_arm64.tar.gz"
      sha256 "` + zeros + `adar"
    end
    on_intel do
      url "https://github.com/mcp-sse/mcp-sse/releases/download/v1.2.3/sse-server_1.2.3_darwin_amd64.tar.gz"
      sha256 "` + zeros + `adar"
    end
  end
`, "  on_linux do\n    on_arm do\n", "sse-server_1.2.3_linux_amd64.tar.gz\"\n      sha256 \"" + zeros + "alin\"\n",
	} {
		if !strings.Contains(formula, want) {
			t.Errorf("the formula lacks %s:\n%s", want, formula)
		}
	}
	if strings.Contains(formula, "windows") || strings.Contains(formula, "{{") {
		t.Errorf("the formula: %s", formula)
	}
}

// A folder without a release is refused, with nothing written.
func TestNoRelease(t *testing.T) {
	for name, spoilt := range map[string]struct{ file, content string }{
		"no list of what was built": {"artifacts.json", ""},
		"no program":                {"artifacts.json", "[]"},
		"no version":                {"metadata.json", "{}"},
		"no lines of checksums":     {"SHA256SUMS", "0:1\n"},
	} {
		dist, out := writeRelease(t, "linux/amd64"), filepath.Join(t.TempDir(), "out")
		ssetest.Must(t, os.WriteFile(filepath.Join(dist, spoilt.file), []byte(spoilt.content), 0o600))
		if err := run([]string{dist, out}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: something is written", name)
		}
	}
}
