package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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

// registry is a registry of npm, in memory, to which packages can be published.
type registry struct {
	*httptest.Server

	mu       sync.Mutex
	about    map[string]json.RawMessage // the document of each package, by its name
	tarballs map[string][]byte          // by path
	asked    []string                   // paths
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{about: map[string]json.RawMessage{}, tarballs: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.TrimPrefix(req.URL.Path, "/")
	w.Header().Set("Content-Type", "application/json")
	if req.Method == http.MethodPut {
		if err := r.publish(name, req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "{}")
		return
	}
	r.asked = append(r.asked, req.URL.Path)
	about, isPackage := r.about[name]
	tarball, isTarball := r.tarballs[req.URL.Path]
	switch {
	case isPackage:
		_, _ = w.Write(about)
	case isTarball:
		_, _ = w.Write(tarball)
	default:
		http.NotFound(w, req)
	}
}

// publish keeps the first version of a package, whose document has its tarball.
func (r *registry) publish(name string, req *http.Request) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	var sent struct {
		Versions map[string]struct {
			Dist struct{ Tarball string }
		}
		Attachments map[string]struct{ Data []byte } `json:"_attachments"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	if _, there := r.about[name]; there || len(sent.Versions) != 1 || len(sent.Attachments) != 1 {
		return fmt.Errorf("%s is there: %v, versions %d, tarballs %d",
			name, there, len(sent.Versions), len(sent.Attachments))
	}
	for _, version := range sent.Versions {
		at, err := url.Parse(version.Dist.Tarball)
		if err != nil {
			return err
		}
		for _, attachment := range sent.Attachments {
			r.tarballs[at.Path] = attachment.Data
		}
	}
	r.about[name] = body
	return nil
}

// fetched returns the packages whose tarballs were asked for, each once.
func (r *registry) fetched() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, path := range r.asked {
		if name, _, isTarball := strings.Cut(strings.TrimPrefix(path, "/"), "/-/"); isTarball {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// The packages are published as a release does it. Then npx gives a client its tools, from the tarball and by the name
// of the package, with an empty cache, no network, and scripts forbidden. npm fetches the program for this machine
// alone.
func TestNPMPackage(t *testing.T) {
	t.Parallel()
	packages, r := npmPackages(t), newRegistry(t)
	home, elsewhere := t.TempDir(), t.TempDir()
	config := filepath.Join(home, "npmrc")
	token := strings.TrimPrefix(r.URL, "http:") + "/:_authToken=of-the-test\n"
	ssetest.Must(t, os.WriteFile(config, []byte(token), 0o600))
	env := append(ssetest.WithState(t), "HOME="+home, "npm_config_cache="+filepath.Join(home, "cache"),
		"npm_config_userconfig="+config, "npm_config_registry="+r.URL, "npm_config_ignore_scripts=true",
		"npm_config_https_proxy=http://127.0.0.1:1", "npm_config_noproxy=127.0.0.1",
		"npm_config_update_notifier=false", "npm_config_audit=false",
		"PATH="+filepath.Dir(node(t))+":"+os.Getenv("PATH"))
	command := func(dir string, words ...string) string {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, env
		printed, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, printed)
		}
		return string(printed)
	}
	const publish = "./deploy/installers/npm/publish.sh"
	command("..", publish, packages)
	if again := command("..", publish, packages); strings.Count(again, npmVersion+" is published already\n") != 3 {
		t.Errorf("published again: %s", again)
	}
	command(elsewhere, "npm", "pack", filepath.Join(packages, "mcp-sse"))

	for _, name := range []string{"./mcp-sse-" + npmVersion + ".tgz", "mcp-sse"} {
		var log output
		cmd := exec.Command("npx", append([]string{"-y", name, "stdio", "--no-remember"}, fake(t)...)...)
		cmd.Dir, cmd.Env, cmd.Stderr, cmd.SysProcAttr = elsewhere, env, &log, endsWithParent()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(
			t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, log.Tail())
		}
		call := &mcp.CallToolParams{Name: "echo", Arguments: map[string]string{"message": "m"}}
		result, err := session.CallTool(t.Context(), call)
		if err != nil || result.Content[0].(*mcp.TextContent).Text != "m" {
			t.Errorf("%s: echo: %+v, %v", name, result, err)
		}
		below := descendants(t, cmd.Process.Pid)
		if nodes := ofNode(below); len(nodes) > 0 {
			t.Errorf("%s: processes of Node.js below npx: %v", name, nodes)
		}
		ssetest.Must(t, session.Close())
		for _, p := range below {
			if !p.endsSoon() {
				t.Errorf("%s: process %d is left", name, p.pid)
			}
		}
	}
	if got, want := r.fetched(), []string{"@mcp-sse/linux-" + nodeProcessor, "mcp-sse"}; !slices.Equal(got, want) {
		t.Errorf("fetched %q, want %q", got, want)
	}
}

// ofNode returns the processes that are Node.js.
func ofNode(all []process) (nodes []int) {
	for _, p := range all {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid)); err == nil && filepath.Base(exe) == "node" {
			nodes = append(nodes, p.pid)
		}
	}
	return nodes
}
