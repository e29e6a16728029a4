//go:build all

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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

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
// of the package, with an empty cache, no network, and scripts forbidden. SIGTERM to npx ends the program,
// and its exit code is that of npx. npm fetches the program for this machine alone.
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
		user := append(slices.Clip(env), "npm_config_cache="+t.TempDir()) // npm keeps what it publishes and installs
		npx := func(args ...string) *exec.Cmd {
			cmd := exec.Command("npx", append([]string{"-y", name}, args...)...)
			cmd.Dir, cmd.Env, cmd.SysProcAttr = elsewhere, user, endsWithParent()
			return cmd
		}
		var log output
		cmd := npx(append([]string{"stdio", "--no-remember"}, fake(t)...)...)
		cmd.Stderr = &log
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

		cmd = npx(append([]string{"stdio", "--no-remember"}, fake(t)...)...)
		in, open, err := os.Pipe() // which stays open
		ssetest.Must(t, err)
		cmd.Stdin = in
		p := run(t, cmd)
		ssetest.Must(t, in.Close())
		p.eventually("the program serves", func() bool {
			return strings.Contains(p.log.String(), "serving stdin and stdout")
		})
		below = descendants(t, p.cmd.Process.Pid)
		ssetest.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
		_ = p.wait() // of npx; what is below it counts
		for _, left := range below {
			if !left.endsSoon() {
				t.Errorf("%s: process %d is left after SIGTERM", name, left.pid)
			}
		}
		ssetest.Must(t, open.Close())

		p = run(t, npx(append([]string{"--addr", "127.0.0.1:0", "--warm", "0"}, fake(t)...)...))
		p.awaitMatch("the URL of the stream", &p.out, streamURL)
		below = descendants(t, p.cmd.Process.Pid)
		ssetest.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
		_ = p.wait()
		for _, left := range below {
			if !left.endsSoon() {
				t.Errorf("%s: process %d of a gateway over HTTP is left after SIGTERM", name, left.pid)
			}
		}
		p = run(t, npx("--no-such-option"))
		_ = p.wait() // the code says more
		ssetest.Want(t, name+": exit code of refused options", p.cmd.ProcessState.ExitCode(), 2)
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
