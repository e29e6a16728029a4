package buildinfo

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A build that no release has made names no package of npm, and a release names the one that it publishes: the linker
// says nothing of a variable that it does not find, so the name of the variable is compared here.
func TestNPMPackageIsNamedByAReleaseAlone(t *testing.T) {
	if NPMPackage != "" {
		t.Errorf("this build names the package %q", NPMPackage)
	}
	for file, want := range map[string]string{
		"../../.goreleaser.yaml":              "-X " + Module + `/internal/buildinfo.NPMPackage={{ envOrDefault "NPM_PACKAGE" "" }}`,
		"../../.github/workflows/release.yml": `NPM_PACKAGE: ${{ secrets.NPM_TOKEN != '' && 'mcp-sse' || '' }}` + "\n",
	} {
		text, err := os.ReadFile(file)
		ssetest.Must(t, err)
		if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q", file, want)
		}
	}
}
