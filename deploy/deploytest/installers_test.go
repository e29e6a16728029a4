//go:build deploy

package deploytest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// From what goreleaser has built, the packages of npm have the program of the release, which names its package where
// npx has started it, and the formula has the checksum of its archive.
func TestInstallersOfARelease(t *testing.T) {
	t.Parallel()
	dist, out := release(t), t.TempDir()
	cmd := exec.Command("go", "run", "./deploy/installers", "dist", out)
	cmd.Dir = filepath.Dir(dist)
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, printed)
	}
	formula := readAll(t, filepath.Join(out, "homebrew", "sse-server.rb"))
	archive := fmt.Sprintf("sse-server_%s_linux_%s.tar.gz", releaseVersion, runtime.GOARCH)
	sum := sha256.Sum256([]byte(readAll(t, filepath.Join(dist, archive))))
	if want := fmt.Sprintf("/v%s/%s\"\n      sha256 \"%x\"\n", releaseVersion, archive, sum); !strings.Contains(formula, want) {
		t.Errorf("the formula has no %s:\n%s", want, formula)
	}

	holder := "linux-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	inCache := filepath.Join(t.TempDir(), "_npx", "node_modules", "@mcp-sse", holder)
	ssetest.Must(t, os.CopyFS(inCache, os.DirFS(filepath.Join(out, "npm", holder))))
	program := filepath.Join(inCache, "bin", "sse-server")
	if printed := run(t, program, "--version"); !strings.HasPrefix(printed, "sse-server v"+releaseVersion+"\n") {
		t.Errorf("--version: %s", printed)
	}
	printed := strings.Join(strings.Fields(run(t, program, "connect", "claude-desktop", "--url", "http://a/mcp")), "")
	if want := `"command":"npx","args":["-y","mcp-sse","stdio",`; !strings.Contains(printed, want) {
		t.Errorf("the entry has no %s: %s", want, printed)
	}
}

// A release packs the chart with its own version, which is that of the image.
func TestChartOfARelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	goTool(t, nil, helm, "package", chart, "--version", releaseVersion, "--app-version", releaseVersion, "--destination", dir)
	packed := filepath.Join(dir, "sse-server-"+releaseVersion+".tgz")
	rendered := goTool(t, nil, helm, "template", "release", packed, "--set", "insecure=true")
	if want := `image: "ghcr.io/mcp-sse/sse-server:` + releaseVersion + `"`; !strings.Contains(rendered, want) {
		t.Errorf("the chart has no %s:\n%s", want, rendered)
	}
}
