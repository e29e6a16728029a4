package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The test is the browser too: it writes its arguments.
func TestMain(m *testing.M) {
	if file := os.Getenv("BROWSER_TEST_FILE"); file != "" {
		text := ""
		for _, arg := range os.Args[1:] {
			text += "<" + arg + ">"
		}
		_ = os.WriteFile(file+".new", []byte(text), 0o600)
		_ = os.Rename(file+".new", file)
		return
	}
	os.Exit(m.Run())
}

func lookUp(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := vars[name]; return value, ok }
}

// Only addresses of the web are opened, parsed and written anew: mcp-remote gave a shell what a server had written
// (CVE-2025-6514).
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"https://issuer.example/authorize?b=2&a=1%20x": "https://issuer.example/authorize?a=1+x&b=2",
		"http://127.0.0.1:1/x":                         "http://127.0.0.1:1/x", "http://localhost/": "http://localhost/",
		"http://issuer.example/": "", "file:///etc/passwd": "", "javascript:alert(1)": "", "https:alert": "", "-x": "", "": "",
		"https://u:p@issuer.example/": "", "https://$(calc.exe)/": "", "https://issuer.example/$(calc)?x=`y`\"'": "https://issuer.example/$(calc)?x=%60y%60%22%27",
		"ms-calculator://x": "", "https://issuer.example/?x=;y": "", "https://issuer.example/ \n": "",
	} {
		got, err := argument(address)
		ssetest.Want(t, address, got, want)
		ssetest.Want(t, address+": refused", err != nil, want == "")
	}
}

func TestOpen(t *testing.T) {
	self, err := os.Executable()
	ssetest.Must(t, err)
	file := filepath.Join(t.TempDir(), "args")
	t.Setenv("BROWSER_TEST_FILE", file)
	ssetest.Must(t, Open(lookUp(map[string]string{"BROWSER": self}), "https://issuer.example/a?x=1&y=%3brm"))
	for range 2000 {
		if got, err := os.ReadFile(file); err == nil {
			ssetest.Want(t, "arguments", string(got), "<https://issuer.example/a?x=1&y=%3Brm>")
			return
		}
		time.Sleep(5 * time.Millisecond) // another process writes it
	}
	t.Error("the browser was not started")
}

func TestIsThere(t *testing.T) {
	needsNoDisplay := runtime.GOOS == "windows" || runtime.GOOS == "darwin"
	for _, test := range []struct {
		vars map[string]string
		want bool
	}{
		{nil, needsNoDisplay},
		{map[string]string{"DISPLAY": "", "WAYLAND_DISPLAY": ""}, needsNoDisplay},
		{map[string]string{"DISPLAY": ":0"}, true},
		{map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, true},
		{map[string]string{"BROWSER": "firefox"}, true},
		{map[string]string{"BROWSER": "", "DISPLAY": ":0"}, true},
		{map[string]string{"BROWSER": "x", "SSH_TTY": "/dev/pts/1"}, true},
		{map[string]string{"SSH_CONNECTION": "x", "DISPLAY": ":0"}, false},
		{map[string]string{"SSH_TTY": "/dev/pts/1", "WAYLAND_DISPLAY": "wayland-0"}, false},
	} {
		ssetest.Want(t, fmt.Sprint(test.vars), IsThere(lookUp(test.vars)), test.want)
	}
}

// No system opens an address by a shell, which would read it: "cmd /c start" is one.
func TestNoProgramIsAShell(t *testing.T) {
	shells := []string{"cmd", "start", "powershell", "pwsh", "sh", "bash", "dash", "zsh", "ksh", "fish", "env", "osascript", "wscript", "cscript", "mshta"}
	for system, command := range programs {
		for _, word := range command {
			name := strings.TrimSuffix(strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:]), ".exe")
			if slices.Contains(shells, name) || strings.EqualFold(word, "/c") || strings.HasPrefix(word, "-") {
				t.Errorf("%s: %q is a shell", system, command)
			}
		}
	}
}
