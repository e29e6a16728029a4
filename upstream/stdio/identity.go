package stdio

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// passing are the variables that differ between two logins, two windows of an editor or two starts of a
// service, and say nothing about what a server is, as patterns of path.Match. Secrets are not among them: two
// clients with other secrets have other servers. PATH is, because agents put directories of their own into
// it: the program that it finds is in the identity by itself.
var passing = []string{
	"_", "PATH", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "TERM", "TERM_*", "COLORTERM", "WINDOWID", "TMUX*", "STY", "PS1",
	"SSH_*", "GPG_TTY", "SECURITYSESSIONID", "XDG_SESSION_*", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
	"INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "MANAGERPID*", "NOTIFY_SOCKET", "LISTEN_*", "MEMORY_PRESSURE_*",
	"HOSTNAME", "KUBERNETES_*", "TMPDIR", "TMP", "TEMP", "INIT_CWD",
	// What agents and editors tell what they start of themselves:
	"*_PID", "*_SESSION_ID", "*_SESSION_IDS", "*_THREAD_ID", "*_TRACE_ID", "*_RUN_ID", "*_SOCK", "*_SOCKET", "*_IPC_HOOK", "*_IPC_HOOK_*",
	"*_IPC_HANDLE", "*_WINDOW_ID", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_CHILD_NOTES_DIR",
	"CLAUDE_CODE_MESSAGING_TOKEN", "VSCODE_NLS_CONFIG",
}

// scripts are the endings of files that are programs for an interpreter. Other files in the arguments
// may be data, which changes all the time.
var scripts = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".pyz", ".rb", ".pl", ".php", ".sh", ".jar", ".wasm", ".dll"}

// file is what the identity has of a file: another version of a program has another time or size.
type file struct {
	Path string
	Time time.Time
	Size int64
}

// Identity returns a text that stays the same as long as the server should say the same of itself: it
// has the program, the arguments, the directory, the times and sizes of the program and of scripts that
// the arguments name, and of the environment only a hash. It reads the file system.
func (c Command) Identity() string {
	program := c.Path
	if filepath.Base(program) != program {
		program = c.inDir(program)
	} else if found, err := exec.LookPath(program); err == nil {
		program = found
	}
	dir, _ := filepath.Abs(c.Dir)
	files := []file{stat(program)}
	for _, arg := range c.Args {
		if slices.Contains(scripts, filepath.Ext(arg)) {
			files = append(files, stat(c.inDir(arg)))
		}
	}
	identity, _ := json.Marshal(struct { // texts, times and numbers can all be JSON
		Args  []string
		Dir   string
		Env   string
		Files []file
	}{append([]string{c.Path}, c.Args...), dir, hashOf(c.Env), files})
	return string(identity)
}

// inDir returns the path of a file that the process would find under a name.
func (c Command) inDir(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(cmp.Or(c.Dir, "."), name)
}

// stat returns what the identity has of a regular file; for any other name, the name alone.
func stat(path string) file {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return file{Path: path}
	}
	return file{path, info.ModTime(), info.Size()}
}

// hashOf returns the hash of an environment without what is passing; nil is that of this process.
func hashOf(env []string) string {
	if env == nil {
		env = os.Environ()
	}
	lasting := slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(passing, func(pattern string) bool {
			is, _ := path.Match(pattern, name)
			return is
		})
	})
	slices.Sort(lasting)
	sum := sha256.Sum256([]byte(strings.Join(lasting, "\x00")))
	return hex.EncodeToString(sum[:])
}
