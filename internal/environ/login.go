package environ

import "strings"

// IsOfLogin reports whether a variable is one that a login of this user has on this machine, wherever a program was
// started: who the user is, where files are, the language, the screen, how the network is reached, and where package
// managers have programs. A shared sse-server of a file starts with these alone, whichever client starts it.
func IsOfLogin(name string) bool {
	name = Fold(name)
	return ofLogin[name] || strings.HasPrefix(name, "LC_")
}

var ofLogin = setOf(
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "PATH", "TMPDIR", "TMP", "TEMP",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_DIRS",
	"XDG_CONFIG_DIRS", "STATE_DIRECTORY",
	"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SSH_AUTH_SOCK",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"NVM_DIR", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_INSTALL", "ASDF_DATA_DIR", "MISE_DATA_DIR",
	"FNM_DIR", "PYENV_ROOT", "UV_CACHE_DIR", "npm_config_cache", "npm_config_userconfig", "npm_config_registry",
	"CARGO_HOME", "GOPATH", "JAVA_HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG",
	// Windows.
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERNAME", "USERPROFILE", "USERDOMAIN",
	"HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
	"PROGRAMW6432", "COMMONPROGRAMFILES", "PUBLIC", "COMPUTERNAME", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS",
)
