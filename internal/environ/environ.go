// Package environ knows the environment variables with which terminals, logins, editors and gateways tell the
// programs in them where they are.
package environ

// IsAmbient reports whether a variable tells where a program was started, and nothing about the program:
// two windows of one user have other values and mean the same server. Any other variable may choose what
// a server does, and for whom.
//
// Names are exact. A pattern such as SSH_* also takes SSH_HOST, with which somebody gives a server a
// machine. No name is here with which a server finds an account, a secret or its data: so SSH_AUTH_SOCK
// (whose keys), DISPLAY (whose screen), HOME, LANG and TMPDIR are not. PATH is, because agents put
// directories of their own into it, with another name each time: compare LastingPath or PathKey.
func IsAmbient(name string) bool { return ambient[Fold(name)] }

// IsPlace reports whether a variable names the folder in which an editor or agent works: it belongs to where a
// program runs, as its directory does, and not to what the program is. Names are exact.
func IsPlace(name string) bool { return places[Fold(name)] }

var places = setOf("CLAUDE_PROJECT_DIR", "WORKSPACE_FOLDER_PATHS", "INIT_CWD", "npm_config_local_prefix")

var ambient = setOf(
	// The shell.
	"_", "PATH", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "PS1", "HISTCONTROL", "HISTSIZE", "LS_COLORS",
	// Terminals.
	"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "TERM_FEATURES", "TERMINAL_EMULATOR",
	"COLORTERM", "COLORFGBG", "WINDOWID", "GPG_TTY",
	"VTE_VERSION", "GNOME_TERMINAL_SCREEN", "GNOME_TERMINAL_SERVICE", "TILIX_ID", "TILIX_VTE_CSS",
	"KONSOLE_VERSION", "KONSOLE_DBUS_SERVICE", "KONSOLE_DBUS_SESSION", "KONSOLE_DBUS_WINDOW", "SHELL_SESSION_ID",
	"ITERM_PROFILE", "ITERM_SESSION_ID", "LC_TERMINAL", "LC_TERMINAL_VERSION", "SECURITYSESSIONID",
	"KITTY_PID", "KITTY_PUBLIC_KEY", "KITTY_WINDOW_ID", "KITTY_INSTALLATION_DIR",
	"ALACRITTY_LOG", "ALACRITTY_SOCKET", "ALACRITTY_WINDOW_ID",
	"WEZTERM_EXECUTABLE", "WEZTERM_EXECUTABLE_DIR", "WEZTERM_CONFIG_DIR", "WEZTERM_CONFIG_FILE", "WEZTERM_PANE",
	"WEZTERM_UNIX_SOCKET", "GHOSTTY_BIN_DIR", "GHOSTTY_RESOURCES_DIR", "GHOSTTY_SHELL_FEATURES",
	"WARP_IS_LOCAL_SHELL_SESSION", "WT_SESSION", "WT_PROFILE_ID", "TMUX", "TMUX_PANE", "STY", "ZELLIJ",
	"ZELLIJ_PANE_ID", "ZELLIJ_SESSION_NAME",
	// Logins, desktops and what systemd tells each start of a service.
	"SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY",
	"XDG_SESSION_ID", "XDG_SESSION_CLASS", "XDG_SESSION_TYPE", "XDG_SESSION_DESKTOP", "XDG_SESSION_PATH",
	"XDG_SEAT", "XDG_SEAT_PATH", "XDG_VTNR", "XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID", "SESSION_MANAGER",
	"GIO_LAUNCHED_DESKTOP_FILE", "GIO_LAUNCHED_DESKTOP_FILE_PID", "BAMF_DESKTOP_FILE_HINT", "CHROME_DESKTOP",
	"ORIGINAL_XDG_CURRENT_DESKTOP", "XPC_FLAGS", "XPC_SERVICE_NAME", "__CFBundleIdentifier", "INVOCATION_ID",
	"JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "MANAGERPID", "MANAGERPIDFDID", "NOTIFY_SOCKET", "LISTEN_FDS",
	"LISTEN_FDNAMES", "LISTEN_PID", "LISTEN_PIDFDID", "WATCHDOG_PID", "WATCHDOG_USEC", "MEMORY_PRESSURE_WATCH",
	"MEMORY_PRESSURE_WRITE",
	// Gateways above this one.
	ParentsVariable,
	// Editors.
	"VSCODE_PID", "VSCODE_CWD", "VSCODE_CLI", "VSCODE_CODE_CACHE_PATH", "VSCODE_CRASH_REPORTER_PROCESS_TYPE",
	"VSCODE_ESM_ENTRYPOINT", "VSCODE_HANDLES_SIGPIPE", "VSCODE_HANDLES_UNCAUGHT_ERRORS", "VSCODE_INJECTION",
	"VSCODE_IPC_HOOK", "VSCODE_IPC_HOOK_CLI", "VSCODE_IPC_HOOK_EXTHOST", "VSCODE_L10N_BUNDLE_LOCATION",
	"VSCODE_NLS_CONFIG", "VSCODE_NONCE", "VSCODE_PROCESS_TITLE", "VSCODE_STABLE", "VSCODE_GIT_ASKPASS_EXTRA_ARGS",
	"VSCODE_GIT_ASKPASS_MAIN", "VSCODE_GIT_ASKPASS_NODE", "VSCODE_GIT_IPC_HANDLE", "CURSOR_TRACE_ID", "ZED_TERM",
	"JEDITERM_SOURCE", "INSIDE_EMACS", "NVIM", "NVIM_LISTEN_ADDRESS", "VIMRUNTIME", "MYVIMRC",
	// Agents.
	"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID",
	"CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
	"CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_KIND",
	"CLAUDE_CODE_SESSION_NAME", "CLAUDE_CODE_SESSION_ORIGIN", "CLAUDE_CODE_SESSION_ATTENDED",
	"CLAUDE_CODE_SESSION_CREATED_AT_MS", "CLAUDE_CODE_SESSION_BEGAN_AS_COPY", "CLAUDE_CODE_HOST_SESSION_ID",
	"CLAUDE_CODE_BRIDGE_SESSION_ID", "CLAUDE_CODE_REMOTE_SESSION_ID", "CLAUDE_CODE_TMUX_SESSION",
	"CLAUDE_CODE_TOOL_USE_ID", "CODEX_THREAD_ID", "CODEX_SESSION_ID", "GEMINI_CLI", "OPENCODE", "OPENCODE_PID",
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[Fold(name)] = true
	}
	return set
}
