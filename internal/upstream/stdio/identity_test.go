package stdio

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

// A change of the server changes its identity, and any other change does not. The values of variables
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

// A variable that somebody has set on purpose makes another server; one of the surroundings makes another place.
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
		{"HOSTNAME", server, place},
		{"HOST", server, server},
		{"CLAUDE_PROJECT_DIR", server, place},
		{"TERM", server, nothing},
		{"SSH_CONNECTION", server, nothing},
		{"CLAUDE_CODE_SESSION_ID", server, nothing},
		{"PWD", server, nothing},
		{"PATH", server, place},
		{"API_KEY", server, server},
		{"OPENAI_SECRET", server, server},
		{"GCLOUD_CREDENTIALS", server, server},
		{"PGPASSWD", server, server},
		{"SOME_PROFILE", server, server},
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

// Answers that are told in any folder are of the same server for the same user: neither the folder nor the
// surroundings of a session take part, and a command that a folder chooses has no such place.
func TestAnyFolder(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	for _, file := range []string{"node", "server", "server.js"} {
		ssetest.Must(t, os.WriteFile(filepath.Join(bin, file), nil, 0o700))
		ssetest.Must(t, os.WriteFile(filepath.Join(dir, file), nil, 0o700))
	}
	t.Setenv("PATH", bin)
	base := func() Command {
		return Command{Path: "node", Args: []string{filepath.Join(bin, "server.js"), "serve"}, Dir: t.TempDir(),
			Env: []string{"HOME=/home/me", "PATH=/usr/bin"}, Inherited: []string{"HOME", "PATH", "VARIABLE", "PWD", "LANG", "HOSTNAME", "CLAUDE_PROJECT_DIR", "NODE_OPTIONS"}}
	}
	want := base().Identity()
	for name, c := range map[string]struct {
		change func(*Command)
		same   bool
	}{
		"another folder":                {func(*Command) {}, true},
		"another inherited variable":    {func(c *Command) { c.Env = append(c.Env, "VARIABLE=x") }, false},
		"a variable of an editor":       {func(c *Command) { c.Env = append(c.Env, "CLAUDE_PROJECT_DIR=/x") }, true},
		"a variable of a terminal":      {func(c *Command) { c.Env = append(c.Env, "PWD=/x") }, true},
		"a folder of one session":       {func(c *Command) { c.Env = append(c.Env, "PATH="+os.TempDir()+"/x:/home/me/.agent/tmp/y:/usr/bin") }, true},
		"a relative folder of programs": {func(c *Command) { c.Env = append(c.Env, "PATH=.:node_modules/.bin::/usr/bin") }, true},
		"programs of a folder":          {func(c *Command) { c.Env = append(c.Env, "PATH=/clone/node_modules/.bin:/usr/bin") }, false},
		"another home":                  {func(c *Command) { c.Env = append(c.Env, "HOME=/clone") }, false},
		"a name of the machine":         {func(c *Command) { c.Env = append(c.Env, "HOSTNAME=x") }, true},
		"another language":              {func(c *Command) { c.Env = append(c.Env, "LANG=C") }, false},
		"a variable that chooses code":  {func(c *Command) { c.Env = append(c.Env, "NODE_OPTIONS=--require /clone/x.js") }, false},
		"a variable given on purpose":   {func(c *Command) { c.Env = append(c.Env, "GIVEN=1") }, false},
		"other arguments":               {func(c *Command) { c.Args[1] = "other" }, false},
	} {
		changed := base()
		c.change(&changed)
		got := changed.Identity()
		ssetest.Want(t, name, got.AnyFolder != "" && got.Server == want.Server && got.AnyFolder == want.AnyFolder, c.same)
	}
	for name, c := range map[string]Command{
		"a relative program":        {Path: "./server", Dir: dir},
		"a relative script":         {Path: "node", Args: []string{"server.js"}, Dir: dir},
		"the principal of a client": {Path: "node", Dir: dir, PrincipalEnv: "USER_NAME"},
	} {
		ssetest.Want(t, name, c.Identity().AnyFolder, "")
	}
}

// In an empty folder a command has all its variables, but for those of a folder, of a terminal and of this machine: it
// runs on the account that its user has named.
func TestInEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	env := []string{"HOME=/home/me", "PATH=.:/usr/bin", "LC_ALL=C", "GIVEN=1", "INIT_CWD=/clone", "DATABASE_URL=prod", "PWD=/clone", "NODE_PATH=/lib", "HOSTNAME=a", "HOME=/home/you"}
	inherited := []string{"HOME", "PATH", "LC_ALL", "INIT_CWD", "DATABASE_URL", "PWD", "NODE_PATH", "HOSTNAME"}
	wantIn := func(c Command, want ...string) {
		t.Helper()
		alone := c.InEmptyFolder(dir).(Command)
		slices.Sort(alone.Env)
		ssetest.Want(t, "variables", fmt.Sprint(alone.Env), fmt.Sprint(want))
		ssetest.Want(t, "folder", alone.Dir, dir)
		ssetest.Want(t, "server", alone.Identity().Server, c.Identity().Server)
	}
	c := Command{Path: "/bin/true", Dir: "/", Env: env, Inherited: inherited}
	wantIn(c, "DATABASE_URL=prod", "GIVEN=1", "HOME=/home/you", "LC_ALL=C", "NODE_PATH=/lib", "PATH=/usr/bin")
	c.Inherited = nil // a PATH that was given stays as it is
	c.Env = env[1:4]
	wantIn(c, "GIVEN=1", "LC_ALL=C", "PATH=.:/usr/bin")
	c.Env = []string{"GIVEN=1"}
	wantIn(c, "GIVEN=1")
	t.Setenv("PATH", "/usr/bin")
	t.Setenv("INIT_CWD", "/clone")
	c.Env = nil
	alone := c.InEmptyFolder(dir).(Command)
	ssetest.Want(t, "server", alone.Identity().Server, c.Identity().Server)
	ssetest.Want(t, "has what is of a folder", slices.Contains(alone.Env, "INIT_CWD=/clone"), false)
}

// A folder that has a say in PATH, as with direnv, is another place. An element that agents put there for one session
// makes none, unless other programs are in it.
func TestPathIsOfThePlace(t *testing.T) {
	one, two, other := t.TempDir(), t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(one, "apply_patch"), filepath.Join(two, "apply_patch"), filepath.Join(other, "node")} {
		ssetest.Must(t, os.WriteFile(file, nil, 0o700))
	}
	at := func(path string) string {
		return Command{Path: "/bin/true", Dir: "/", Env: []string{"PATH=" + path}, Inherited: []string{"PATH"}}.Identity().Place
	}
	list := func(elements ...string) string { return strings.Join(elements, string(filepath.ListSeparator)) }
	want := at(list(one, "/usr/bin"))
	ssetest.Want(t, "in another session", at(list(two, "/usr/bin")), want)
	for name, path := range map[string]string{
		"programs of a folder":                list("/clone/bin", one, "/usr/bin"),
		"programs of a folder of one session": list(other, "/usr/bin"),
		"without those of the session":        "/usr/bin",
	} {
		if at(path) == want {
			t.Errorf("%s: the place is the same", name)
		}
	}
}

// A folder is what is at its path, not the path.
func TestPlaceIsTheFolderAndNotItsPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a folder is its path there")
	}
	parent := t.TempDir()
	path := func(name string) string { return filepath.Join(parent, name) }
	for _, name := range []string{"a", "b"} {
		ssetest.Must(t, os.Mkdir(path(name), 0o700))
	}
	at := func(name string) string { return Command{Path: "/bin/true", Dir: path(name)}.Identity().Place }
	ssetest.Must(t, os.Symlink(path("a"), path("link")))
	before := at("link")
	ssetest.Want(t, "place", at("link"), before)
	ssetest.Must(t, os.Remove(path("link")))
	ssetest.Must(t, os.Symlink(path("b"), path("link")))
	if at("link") == before {
		t.Error("a link that leads elsewhere is the same place")
	}
	before = at("a")
	ssetest.Must(t, os.Rename(path("a"), path("old")))
	ssetest.Must(t, os.Mkdir(path("a"), 0o700))
	if at("a") == before {
		t.Error("a new folder at the same path is the same place")
	}
}

// Bytes that are no UTF-8 tell servers and folders apart.
func TestIdentityKeepsAllBytes(t *testing.T) {
	for name, of := range map[string]func(text string) Command{
		"a program":   func(text string) Command { return Command{Path: "/" + text} },
		"an argument": func(text string) Command { return Command{Path: "/bin/true", Args: []string{text}} },
		"a directory": func(text string) Command { return Command{Path: "/bin/true", Dir: "/no/" + text} },
		"a variable":  func(text string) Command { return Command{Path: "/bin/true", Env: []string{"A=" + text}} },
	} {
		seen := map[string]bool{}
		for _, text := range []string{"\xff", "\xfe", "\ufffd", `\xff`} {
			seen[of(text).Identity().String()] = true
		}
		ssetest.Want(t, name+": identities", len(seen), 4)
	}
	if (Command{Path: "a", Args: []string{"b", "c"}}.Identity().Server == Command{Path: "a", Args: []string{`b" "c`}}.Identity().Server) {
		t.Error("two arguments are one")
	}
}

// A text without = is no variable, and hides none.
func TestMalformedVariableHidesNone(t *testing.T) {
	of := func(value string) string {
		return Command{Path: "/bin/true", Env: []string{"TENANT=" + value, "TENANT"}}.Identity().Server
	}
	if of("a") == of("b") {
		t.Error("the server is the same with another variable")
	}
}

// Another program at the same path is another server.
func TestTimeAndSizeOfTheProgramAreInTheIdentity(t *testing.T) {
	program, then := filepath.Join(t.TempDir(), "program"), time.Unix(1e9, 0)
	write := func(text string, at time.Time) string {
		ssetest.Must(t, os.WriteFile(program, []byte(text), 0o700))
		ssetest.Must(t, os.Chtimes(program, at, at))
		return Command{Path: program}.Identity().Server
	}
	one := write("one", then)
	ssetest.Want(t, "server", write("two", then), one)
	for name, other := range map[string]string{"another size": write("three", then), "another time": write("one", then.Add(time.Nanosecond))} {
		if other == one {
			t.Errorf("%s: the server is the same", name)
		}
	}
}

// A process knows the folder in which it runs by PWD, and nothing of the one in which its caller runs.
func TestProcessKnowsItsOwnFolder(t *testing.T) {
	dir := t.TempDir()
	c := Command{Path: "/bin/true", Env: []string{"PWD=/clone", "OLDPWD=/clone", "VSCODE_CWD=/clone", "A=1"}, Inherited: []string{"PWD", "OLDPWD", "VSCODE_CWD"}}
	here, err := os.Getwd()
	ssetest.Must(t, err)
	want := func(c Command, variables ...string) {
		t.Helper()
		got := c.ofProcess()
		slices.Sort(got)
		ssetest.Want(t, "variables", fmt.Sprintf("%q", got), fmt.Sprintf("%q", variables))
	}
	want(c, "A=1", "OLDPWD=/clone", "PWD="+here, "VSCODE_CWD=/clone")
	c.Dir = dir
	want(c, "A=1", "PWD="+dir)
	c.Inherited = nil // somebody has given them
	want(c, "A=1", "OLDPWD=/clone", "PWD=/clone", "VSCODE_CWD=/clone")
	want(Command{Path: "/bin/true", Env: []string{"A=1"}}, "A=1")
}
