package stdio

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// What changes the server changes its identity, and what does not, does not. The values of variables
// are not in it.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "server.js")
	ssetest.Must(t, os.WriteFile(script, []byte("one"), 0o600))
	base := Command{Path: "sh", Args: []string{"server.js", "--fast"}, Dir: dir, Env: []string{"TOKEN=s3cret", "A=1"}}
	identity := base.Identity().String()
	if strings.Contains(identity, "s3cret") {
		t.Errorf("%s has the value of a variable", identity)
	}

	ssetest.Must(t, os.WriteFile(filepath.Join(dir, "data.db"), []byte("one"), 0o600))
	data := base
	data.Args = append(data.Args, "data.db")
	before := data.Identity().Server
	ssetest.Must(t, os.WriteFile(filepath.Join(dir, "data.db"), []byte("three"), 0o600))
	ssetest.Want(t, "with other data", data.Identity().Server, before)

	for what, change := range map[string]func(c *Command){
		"another program":        func(c *Command) { c.Path = "ls" },
		"another argument":       func(c *Command) { c.Args = []string{"server.js"} },
		"another variable":       func(c *Command) { c.Env = []string{"TOKEN=other", "A=1"} },
		"a secret of an agent's": func(c *Command) { c.Env = append(c.Env[:2:2], "COPILOT_MCP_TOKEN=alice") },
		"no environment":         func(c *Command) { c.Env = nil },
		"another file":           func(*Command) { ssetest.Must(t, os.WriteFile(script, []byte("three"), 0o600)) },
	} {
		other := base
		change(&other)
		if other.Identity().Server == base.Identity().Server && other.Identity().Server == identity {
			t.Errorf("%s: the server is the same", what)
		}
		if other.Identity().String() == identity {
			t.Errorf("%s: the identity is the same", what)
		}
		ssetest.Must(t, os.WriteFile(script, []byte("one"), 0o600))
	}
}

// What a variable makes another one of, by who has set it: somebody on purpose, or the surroundings.
func TestVariablesInTheIdentity(t *testing.T) {
	const server, place, nothing = "another server", "another place", "the same"
	for _, c := range []struct{ variable, given, inherited string }{
		{"SSH_HOST", server, server},
		{"SSH_PASSWORD", server, server},
		{"KUBERNETES_CONTEXT", server, server},
		{"MYSQL_SOCKET", server, place},
		{"INSTAGRAM_SESSION_ID", server, place},
		{"TARGET_PID", server, place},
		{"TMPDIR", server, place},
		{"LANG", server, place},
		{"MY_TOKEN", server, server},
		{"NODE_OPTIONS", server, server},
		{"npm_config_registry", server, server},
		{"PYTHONPATH", server, server},
		{"UV_INDEX_URL", server, server},
		{"LD_PRELOAD", server, server},
		{"AWS_PROFILE", server, server},
		{"DOCKER_HOST", server, server},
		{"HOSTNAME", server, nothing},
		{"HOST", server, server},
		{"CLAUDE_PROJECT_DIR", server, place},
		{"TERM", server, nothing},
		{"SSH_CONNECTION", server, nothing},
		{"CLAUDE_CODE_SESSION_ID", server, nothing},
		{"PATH", server, nothing},
	} {
		of := func(value string, inherited ...string) Command {
			return Command{Path: "/bin/true", Env: []string{"A=1", c.variable + "=" + value}, Inherited: inherited}
		}
		differs := func(a, b Command) string {
			x, y := a.Identity(), b.Identity()
			switch {
			case x.Server != y.Server:
				return server
			case x.Place != y.Place:
				return place
			}
			return nothing
		}
		ssetest.Want(t, c.variable+" given", differs(of("a"), of("b")), c.given)
		ssetest.Want(t, c.variable+" inherited", differs(of("a", c.variable), of("b", c.variable)), c.inherited)
	}
	home := Command{Path: "/bin/true", Dir: "/", Env: []string{}}
	other := home
	other.Dir = t.TempDir()
	if home.Identity().Server != other.Identity().Server || home.Identity().Place == other.Identity().Place {
		t.Error("another directory is not another place alone")
	}
}

// A command is portable if its directory does not choose which program it is. A command in doubt is not portable.
func TestPortableCommands(t *testing.T) {
	bin, home := t.TempDir(), t.TempDir()
	script := filepath.Join(bin, "server.js")
	write := func(path, text string) {
		t.Helper()
		ssetest.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		ssetest.Must(t, os.WriteFile(path, []byte(text), 0o700))
	}
	write(script, "")
	cli := filepath.Join(bin, "lib", "npm", "bin", "npm-cli.js")
	write(cli, "")
	write(filepath.Join(bin, "other", "tool"), "")
	for _, program := range []string{"node", "npx", "uvx", "python3", "sh", "make", "docker", "server", "uv", "npm", "nice", "doppler", "env", "timeout", "task2", "bash", "pipx", "gulp"} {
		write(filepath.Join(bin, program), "")
	}
	t.Setenv("PATH", bin)
	for command, want := range map[string]bool{
		"node " + script:                                      true,
		"node " + script + " --port=1 --stdio":                true,
		"node " + script + " --name x":                        false,
		"node " + script + " serve":                           false,
		bin + "/server mcp":                                   false,
		bin + "/gulp --silent":                                false,
		"node " + script + " https://example.com/a/b":         true,
		bin + "/server stdio":                                 true,
		"npx -y @scope/server@1.2.3 --flag":                   true,
		"npx -y server-x":                                     true,
		"uvx server-x==1.0":                                   true,
		"docker run -i --rm ghcr.io/github/server:1 -v /a:/b": true,
		"node server.js":                                      false,
		"node ./server.js":                                    false,
		"node -r hook " + script:                              false,
		"node " + bin + "/none.js":                            false,
		"node " + script + " data/x":                          false,
		"node " + script + " --dir=../x":                      false,
		"node " + script + " .":                               false,
		"node " + script + " ~/x":                             false,
		"python3 -m server":                                   false,
		"sh -c server":                                        false,
		"make serve":                                          false,
		"npm start":                                           false,
		"uv run server":                                       false,
		"docker compose up":                                   false,
		"docker --context x run ghcr.io/a/server":             false,
		"uvx --from server-x[cli]==1.0 --with y server":       true,
		"pipx run --spec server-x==1 server-x":                true,
		"pipx install server-x":                               false,
		bin + "/server --port 8080 --boot 8s --url=https://a/b /data": true,
		bin + "/server serve":                              false,
		bin + "/server --verbose=true":                     true,
		"nice bash -c x":                                   false,
		"nice -n 5 server":                                 false,
		"doppler run -- npx -y server-x":                   false,
		"doppler run --command=npx":                        false,
		"env A=b npx -y server-x":                          false,
		"timeout 5 npx -y server-x":                        false,
		"nice " + bin + "/other/tool":                      false,
		"task2 serve":                                      false,
		"uv tool run server-x":                             false,
		"npx -c server-x":                                  false,
		"npx --call=server-x":                              false,
		"npx -w a server-x":                                false,
		"npx -y bash -c x":                                 false,
		"npx -y dotenv-cli npx other":                      false,
		"npx -y proxy --stdio=npx":                         false,
		"npx":                                              false,
		"uvx --directory /a server-x":                      false,
		"uvx --with-editable x server-x":                   false,
		"uvx proxy " + bin + "/other/tool":                 false,
		"uvx proxy server":                                 false,
		"node " + script + " npx other":                    false,
		"node " + cli + " start":                           false,
		"./server":                                         false,
		"none":                                             false,
		"node " + script + " --config .srv.json":           false,
		"node " + script + " --config=.srv.json":           false,
		"node " + script + " --set config=.srv.json":       false,
		"node " + script + " -c.srv.json":                  false,
		"node " + script + " a,.srv.json":                  false,
		"docker run --env-file .srv.json ghcr.io/a/server": false,
	} {
		args := strings.Fields(command)
		c := Command{Path: args[0], Args: args[1:], Dir: t.TempDir(), Env: []string{"HOME=" + home}}
		write(filepath.Join(c.Dir, ".srv.json"), "")
		ssetest.Want(t, command, c.Identity().Portable(), want)
	}

	// A text for a shell is several words, and a link to a program is that program.
	for _, c := range []Command{
		{Path: "npx", Args: []string{"-y", "proxy", "--stdio", "'npx' other"}}, {Path: bin + "/server", Args: []string{"--run=a; bash x"}}, {Path: bin + "/tool"},
	} {
		c.Dir, c.Env = t.TempDir(), []string{"HOME=" + home}
		if c.Path == bin+"/tool" {
			ssetest.Must(t, os.Symlink(bin+"/sh", c.Path))
		}
		ssetest.Want(t, fmt.Sprint(c.Path, c.Args), c.Identity().Portable(), false)
	}

	// A folder has the parents of the one to which it leads, too.
	clone := t.TempDir()
	write(filepath.Join(clone, ".npmrc"), "")
	ssetest.Must(t, os.Mkdir(filepath.Join(clone, "sub"), 0o700))
	link := filepath.Join(t.TempDir(), "link")
	ssetest.Must(t, os.Symlink(filepath.Join(clone, "sub"), link))
	ssetest.Want(t, "a link into a clone", Command{Path: "npx", Args: []string{"-y", "server-x"}, Dir: link}.Identity().Portable(), false)
	// Nor may PATH have programs of the folder or of a project around it, or an editor name one that chooses.
	for variable, want := range map[string]bool{
		"PATH=" + clone + "/sub/tools:" + bin: false, "PATH=" + clone + "/node_modules/.bin:" + bin: false, "PATH=.:" + bin: false,
		"PATH=" + home + "/node_modules/.bin:" + bin: true, "PATH=" + bin: true, "CLAUDE_PROJECT_DIR=" + clone: false, "CLAUDE_PROJECT_DIR=" + home: true,
	} {
		work := filepath.Join(clone, "sub")
		ssetest.Must(t, os.Remove(filepath.Join(clone, ".npmrc")))
		if strings.HasPrefix(variable, "CLAUDE") {
			work = t.TempDir()
		}
		write(filepath.Join(clone, ".env"), "")
		if strings.HasPrefix(variable, "PATH") {
			ssetest.Must(t, os.Remove(filepath.Join(clone, ".env")))
		}
		c := Command{Path: bin + "/server", Dir: work, Env: []string{"HOME=" + home, variable}}
		ssetest.Want(t, variable, c.Identity().Portable(), want)
		write(filepath.Join(clone, ".npmrc"), "")
	}

	for file, want := range map[string]bool{
		"README.md":                          true,
		".npmrc":                             false,
		"uv.toml":                            false,
		".env":                               false,
		"node_modules/other/x":               false,
		"__pypackages__/3.11/lib/bin/x":      false,
		".mise.local.toml":                   false,
		"node_modules/server-x/package.json": false,
		"node_modules/.bin/server-x":         false,
		"server-x/package.json":              false,
		"server-x/__init__.py":               false,
		"server-x.py":                        false,
	} {
		for _, inside := range []string{"", "a/b"} {
			dir := t.TempDir()
			write(filepath.Join(dir, file), "")
			at := filepath.Join(dir, inside)
			ssetest.Must(t, os.MkdirAll(at, 0o700))
			c := Command{Path: "npx", Args: []string{"-y", "server-x@1"}, Dir: at, Env: []string{"HOME=" + home}}
			ssetest.Want(t, file+" above "+inside, c.Identity().Portable(), want)
		}
	}
	dir := t.TempDir()
	data := Command{Path: "npx", Args: []string{"-y", "server-x", "data"}, Dir: dir, Env: []string{"HOME=" + home}}
	ssetest.Want(t, "an argument that names nothing", data.Identity().Portable(), true)
	write(filepath.Join(dir, "data"), "")
	ssetest.Want(t, "an argument that names a file", data.Identity().Portable(), false)
	// A variable that names something in the folder chooses, too: an empty element of a list is the folder itself.
	for variable, want := range map[string]bool{
		"PYTHONPATH=:/opt/lib": false, "PYTHONPATH=data": false, "PYTHONPATH=src": true, "NoDefaultCurrentDirectoryInExePath=1": true, "PYTHONPATH=.": false, "NODE_PATH=data:/x": false, "NODE_OPTIONS=--require ./hook.js": false,
		"NODE_OPTIONS=--require=data": false, "LD_LIBRARY_PATH=/opt/lib:": false, "PERL5LIB=./": false, "BUNDLE_GEMFILE=data": false,
		"PYTHONPATH=/opt/lib": true, "NODE_OPTIONS=--max-old-space-size=4096": true, "LANG=C.UTF-8": true, "API_URL=https://a/./b": true, "LD_LIBRARY_PATH=": true,
	} {
		c := Command{Path: "npx", Args: []string{"-y", "server-x"}, Dir: dir, Env: []string{"HOME=" + home, variable}}
		ssetest.Want(t, variable, c.Identity().Portable(), want)
	}
	for text, want := range map[string]bool{
		`{"name":"app"}`:                             true,
		`{"name":"server-x"}`:                        false,
		`{"name":"app","bin":{"server-x":"./x.js"}}`: false,
		`{`: false,
	} {
		dir := t.TempDir()
		write(filepath.Join(dir, "package.json"), text)
		c := Command{Path: "npx", Args: []string{"-y", "server-x"}, Dir: dir, Env: []string{"HOME=" + home}}
		ssetest.Want(t, text, c.Identity().Portable(), want)
	}
	write(filepath.Join(home, ".npmrc"), "") // the user's own counts everywhere
	c := Command{Path: "npx", Args: []string{"-y", "server-x"}, Dir: home, Env: []string{"HOME=" + home}}
	ssetest.Want(t, "in the home directory", c.Identity().Portable(), true)
	c.Env = []string{"HOME=/nowhere"}
	ssetest.Want(t, "in that of somebody else", c.Identity().Portable(), false)
}
