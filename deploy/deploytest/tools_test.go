//go:build deploy

package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Tools of other modules, which go run builds and keeps in its cache. The version of
// goreleaser is the last one whose modules a proxy has.
const (
	goreleaser  = "github.com/goreleaser/goreleaser/v2@v2.16.0"
	ko          = "github.com/google/ko@v0.19.1"
	helm        = "helm.sh/helm/v4/cmd/helm@v4.3.1"
	kubeconform = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"
	actionlint  = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
	composeSpec = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"
)

// goTool runs a tool at the root of the repository, and returns what it printed. The test
// fails if the tool does.
func goTool(t *testing.T, env []string, tool string, args ...string) string {
	t.Helper()
	printed, err := tryTool(t, root, env, tool, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", tool, strings.Join(args, " "), err, printed)
	}
	return printed
}

// tryTool is goTool for a tool that may fail, in a folder.
func tryTool(t *testing.T, dir string, env []string, tool string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", tool}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS="), env...)
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}

// The workflows are right, and run only actions of known commits.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	goTool(t, nil, actionlint)
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	pinned := regexp.MustCompile(`uses: \S+@[0-9a-f]{40} # v\S+$`)
	for _, file := range files {
		for line := range strings.Lines(readAll(t, file)) {
			if line = strings.TrimSpace(line); strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s: not pinned to a commit: %s", file, line)
			}
		}
	}
}
