package environ_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/environ"
)

// What a terminal or an editor says of itself is ambient. What may choose a machine, an account, a secret or data is
// not, however much its name is like one that is.
func TestOnlyExactNamesAreAmbient(t *testing.T) {
	for names, want := range map[string]bool{
		"TERM TERM_PROGRAM COLORTERM WINDOWID TMUX SSH_TTY SSH_CONNECTION VSCODE_PID VSCODE_IPC_HOOK_CLI CLAUDECODE CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS CODEX_THREAD_ID PATH PWD": true,
		"SSH_HOST SSH_PASSWORD SSH_AUTH_SOCK KUBERNETES_CONTEXT KUBERNETES_SERVICE_HOST MYSQL_SOCKET INSTAGRAM_SESSION_ID MY_TOKEN":                                               false,
		"DOCKER_HOST TARGET_PID TMPDIR HOME USER LANG DISPLAY DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR XDG_CONFIG_HOME":                                                           false,
		"NODE_OPTIONS LD_PRELOAD PYTHONPATH npm_config_registry UV_INDEX_URL AWS_PROFILE GIT_ASKPASS TERM_X term VSCODE_TOKEN":                                                    false,
		"": false,
	} {
		for name := range strings.SplitSeq(names, " ") {
			if got := environ.IsAmbient(name); got != want {
				t.Errorf("%q: got %v, want %v", name, got, want)
			}
		}
	}
}
