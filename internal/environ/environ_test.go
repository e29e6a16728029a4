package environ

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A variable with which a terminal or an editor tells of itself is ambient. One that may choose a machine, an
// account, a secret or data is not, however much its name is like one that is.
func TestOnlyExactNamesAreAmbient(t *testing.T) {
	for names, want := range map[string]bool{
		"TERM TERM_PROGRAM COLORTERM WINDOWID TMUX SSH_TTY SSH_CONNECTION VSCODE_PID VSCODE_IPC_HOOK_CLI CLAUDECODE CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS CODEX_THREAD_ID PATH PWD MCP_SSE_PARENTS": true,
		"SSH_HOST SSH_PASSWORD SSH_AUTH_SOCK KUBERNETES_CONTEXT KUBERNETES_SERVICE_HOST MYSQL_SOCKET INSTAGRAM_SESSION_ID MY_TOKEN":                                                               false,
		"DOCKER_HOST TARGET_PID TMPDIR HOME USER LANG DISPLAY DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR XDG_CONFIG_HOME":                                                                           false,
		"NODE_OPTIONS LD_PRELOAD PYTHONPATH npm_config_registry UV_INDEX_URL AWS_PROFILE GIT_ASKPASS TERM_X term VSCODE_TOKEN":                                                                    false,
		"": false,
	} {
		for name := range strings.SplitSeq(names, " ") {
			if got := IsAmbient(name); got != want {
				t.Errorf("%q: got %v, want %v", name, got, want)
			}
		}
	}
}

// Windows does not tell apart names that differ in case; other systems do.
func TestNamesOfOneVariable(t *testing.T) {
	ssetest.Want(t, "of Windows", foldOn("windows", "Path"), foldOn("windows", "PATH"))
	if foldOn("linux", "Path") == foldOn("linux", "PATH") {
		t.Error("elsewhere two variables are one")
	}
	ssetest.Want(t, "Path is ambient", IsAmbient("Path"), runtime.GOOS == "windows")
}

func TestSplit(t *testing.T) {
	for variable, want := range map[string][2]string{"A=1": {"A", "1"}, "A==": {"A", "="}, "A": {"A=", ""}, "A=": {"A", ""}} {
		name, value := Split(variable)
		ssetest.Want(t, variable, [2]string{name, value}, want)
	}
}

// An element that a PATH has for one session does not last, and neither does a relative one.
func TestLastingPath(t *testing.T) {
	list := func(elements ...string) string { return strings.Join(elements, string(filepath.ListSeparator)) }
	bin, err := filepath.Abs("/usr/bin")
	ssetest.Must(t, err)
	home, err := filepath.Abs("/home/me/.agent/tmp/y")
	ssetest.Must(t, err)
	got := LastingPath(list(filepath.Join(os.TempDir(), "x"), ".", "", "node_modules/.bin", home, bin))
	ssetest.Want(t, "PATH", got, bin)
}

// A temporary folder of PATH is another one if a program in it is: if a link leads elsewhere, or a script has something
// else, as those of two virtual environments have.
func TestPathKeyOfATemporaryFolder(t *testing.T) {
	folder := func(script, target string) string {
		dir := t.TempDir()
		ssetest.Must(t, os.WriteFile(filepath.Join(dir, "pip"), []byte(script), 0o700))
		ssetest.Must(t, os.Symlink(target, filepath.Join(dir, "python3")))
		return dir
	}
	want := PathKey(folder("#!a", "/usr/bin/python3"))
	ssetest.Want(t, "the same files in another folder", PathKey(folder("#!a", "/usr/bin/python3")), want)
	for name, other := range map[string]string{
		"another script": folder("#!b", "/usr/bin/python3"), "another link": folder("#!a", "/x"), "no folder": "/tmp/none/of/it",
	} {
		if PathKey(other) == want {
			t.Errorf("%s: the same key", name)
		}
	}
}

// A child process has the gateways above this one in its environment, and this one after them.
func TestParents(t *testing.T) {
	own := strconv.Itoa(os.Getpid()) + "/a%2Cb/mcp"
	for above, want := range map[string]string{
		"": own, "1/mcp": "1/mcp," + own, "1/mcp,23/docs/mcp": "1/mcp,23/docs/mcp," + own, ",,": own,
	} {
		t.Setenv(ParentsVariable, above)
		ssetest.Want(t, "below "+above, ForChild("/a,b/mcp/"), "MCP_SSE_PARENTS="+want)
	}
}
