package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// npmVersion is the version of the packages that the tests make.
const npmVersion = "0.98.7"

// nodeProcessor is the processor of this machine in the words of Node.js.
var nodeProcessor = strings.Replace(runtime.GOARCH, "amd64", "x64", 1)

// makePackages makes the packages of npm once, as a release does, with the program for this machine and with something
// else for a Mac, beside the programs that the tests have built.
var makePackages = sync.OnceValues(func() (packages string, err error) {
	dist, out := filepath.Join(programs.dir, "dist"), filepath.Join(programs.dir, "installers")
	files := map[string]string{
		"of-a-mac":      "for a Mac",
		"metadata.json": `{"version": "` + npmVersion + `"}`,
		"artifacts.json": fmt.Sprintf(`[
			{"type": "Binary", "path": %q, "goos": "linux", "goarch": %q, "extra": {"ID": "sse-server"}},
			{"type": "Binary", "path": %q, "goos": "darwin", "goarch": "arm64", "extra": {"ID": "sse-server"}}
		]`, filepath.Join(programs.dir, "sse-server"), runtime.GOARCH, filepath.Join(dist, "of-a-mac")),
		"SHA256SUMS": "0  sse-server_" + npmVersion + "_linux_amd64.tar.gz\n",
	}
	if err := os.Mkdir(dist, 0o700); err != nil {
		return "", err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dist, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("go", "run", "./deploy/installers", dist, out)
	cmd.Dir = ".."
	if printed, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, printed)
	}
	return filepath.Join(out, "npm"), nil
})

// npmPackages returns the folder of the packages of npm.
func npmPackages(t *testing.T) string {
	t.Helper()
	built(t, "sse-server")
	packages, err := makePackages()
	ssetest.Must(t, err)
	return packages
}

// installPackages lays the packages out as npm does when it has installed them, and returns the command line of the
// program there.
func installPackages(t *testing.T) []string {
	t.Helper()
	packages := npmPackages(t)
	modules, holder := filepath.Join(t.TempDir(), "node_modules"), "linux-"+nodeProcessor
	ssetest.Must(t, os.CopyFS(filepath.Join(modules, "mcp-sse"), os.DirFS(filepath.Join(packages, "mcp-sse"))))
	ssetest.Must(t, os.CopyFS(filepath.Join(modules, "@mcp-sse", holder), os.DirFS(filepath.Join(packages, holder))))
	return []string{node(t), filepath.Join(modules, "mcp-sse", "bin", "mcp-sse.js")}
}

// The launcher of the npm package becomes the program, or waits for it where Node.js cannot: signals, the end of stdin
// and the exit code are the program's, and nothing is left.
func TestLauncherOfTheNPMPackage(t *testing.T) {
	t.Parallel()
	launcher := installPackages(t)
	older := filepath.Join(t.TempDir(), "older.js")
	ssetest.Must(t, os.WriteFile(older, []byte("process.execve = undefined"), 0o600))
	for name, test := range map[string]struct {
		command []string
		below   int // processes of the launcher below the one that is started
	}{
		"becomes the program":   {launcher, 0},
		"waits for the program": {[]string{launcher[0], "--require", older, launcher[1]}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func(t *testing.T, args ...string) (p *running, stdin interface{ Close() error }) {
				t.Helper()
				cmd := exec.Command(test.command[0], slices.Concat(test.command[1:], args)...)
				cmd.Env = ssetest.WithState(t)
				cmd.SysProcAttr = endsWithParent()
				stdin, err := cmd.StdinPipe()
				ssetest.Must(t, err)
				return run(t, cmd), stdin
			}
			ended := func(t *testing.T, p *running, below []process, code int) {
				t.Helper()
				_ = p.wait() // the code says more
				if got := p.cmd.ProcessState.ExitCode(); got != code {
					t.Errorf("exit code %d, want %d", got, code)
				}
				for _, left := range below {
					if !left.endsSoon() {
						t.Errorf("process %d is left", left.pid)
					}
				}
			}
			for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 0, syscall.SIGINT: 0} {
				t.Run(sig.String(), func(t *testing.T) {
					t.Parallel()
					p, _ := start(t, append([]string{"--addr", "127.0.0.1:0", "--warm", "0"}, fake(t)...)...)
					p.awaitMatch("the URL of the stream", &p.out, streamURL)
					below := descendants(t, p.cmd.Process.Pid)
					if len(below) != test.below {
						t.Errorf("%d processes below the first, want %d", len(below), test.below)
					}
					ssetest.Must(t, p.cmd.Process.Signal(sig))
					ended(t, p, below, code)
				})
			}
			t.Run("hangup", func(t *testing.T) {
				t.Parallel()
				config := filepath.Join(t.TempDir(), "servers.yaml")
				ssetest.Must(t, os.WriteFile(config, []byte("addr: 127.0.0.1:0\n"), 0o600))
				p, _ := start(t, "--config", config)
				p.awaitMatch("the URL of the stream", &p.out, streamURL)
				ssetest.Must(t, p.cmd.Process.Signal(syscall.SIGHUP))
				p.eventually("reloaded", func() bool {
					return strings.Contains(p.log.String(), "configuration reloaded")
				})
				below := descendants(t, p.cmd.Process.Pid)
				ssetest.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
				ended(t, p, below, 0)
			})
			t.Run("end of stdin", func(t *testing.T) {
				t.Parallel()
				p, stdin := start(t, append([]string{"stdio", "--no-remember"}, fake(t)...)...)
				ssetest.Must(t, stdin.Close())
				ended(t, p, nil, 0)
			})
			t.Run("refused options", func(t *testing.T) {
				t.Parallel()
				p, _ := start(t, "--no-such-option")
				ended(t, p, nil, 2)
			})
		})
	}
}

// npx has a shell start the program, and passes SIGTERM to that shell alone.
func TestProgramOfNPXEndsWithItsShell(t *testing.T) {
	t.Parallel()
	shell := []string{"sh", "-c", `"$@" & wait`, "sh", built(t, "sse-server"), "--addr", "127.0.0.1:0", "--warm", "0"}
	shell = append(shell, fake(t)...)
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Env = append(ssetest.WithState(t), "npm_command=exec", "npm_lifecycle_script='mcp-sse'")
	cmd.SysProcAttr = endsWithParent()
	p := run(t, cmd)
	p.awaitMatch("the URL of the stream", &p.out, streamURL)
	below := descendants(t, p.cmd.Process.Pid)
	ssetest.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	_ = p.wait() // ended by the signal
	if len(below) == 0 {
		t.Error("the shell has started nothing")
	}
	for _, left := range below {
		if !left.endsSoon() {
			t.Errorf("process %d is left", left.pid)
		}
	}
}

// Without the package for its system, the launcher says what to do.
func TestLauncherOfTheNPMPackageAlone(t *testing.T) {
	t.Parallel()
	launcher := installPackages(t)
	modules := filepath.Dir(filepath.Dir(filepath.Dir(launcher[1])))
	ssetest.Must(t, os.RemoveAll(filepath.Join(modules, "@mcp-sse")))
	alone := func(want string) {
		t.Helper()
		p := run(t, exec.Command(launcher[0], launcher[1]))
		if _ = p.wait(); p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(p.log.String(), want) {
			t.Errorf("%v: %s, want %q", p.err, p.log.String(), want)
		}
	}
	alone("the package @mcp-sse/linux-" + nodeProcessor + " is missing.")
	manifest := filepath.Join(modules, "mcp-sse", "package.json")
	ssetest.Must(t, os.WriteFile(manifest, []byte(`{"optionalDependencies": {}}`), 0o600))
	alone("there is no program for linux on " + nodeProcessor)
}
