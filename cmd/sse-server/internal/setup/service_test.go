package setup

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// machine is a system with services.
type machine struct {
	System
	ran    []string
	linger string
	fails  string // a command that fails
	status string // what systemctl status writes
	exits  int    // its exit code
}

// exited is the error of a command that has ended with a code.
type exited int

func (e exited) Error() string { return fmt.Sprint("exit status ", int(e)) }
func (e exited) ExitCode() int { return int(e) }

func newMachine(t *testing.T, system string) *machine {
	m := &machine{System: System{OS: system, Program: "/opt/a b/sse-server", ConfigHome: t.TempDir(),
		SocketOf: func(*config.Config) (string, error) { return "/state/run/daemon-30000-aa.sock", nil }}}
	m.Run = func(name string, args ...string) (string, error) {
		command := strings.Join(append([]string{name}, args...), " ")
		m.ran = append(m.ran, command)
		if m.fails != "" && strings.Contains(command, m.fails) {
			return "no bus\n", errors.New("exit status 1")
		}
		if name == "loginctl" {
			return m.linger + "\n", nil
		}
		if slices.Contains(args, "status") {
			if m.exits == 0 {
				return m.status, nil
			}
			return m.status, exited(m.exits)
		}
		return "", nil
	}
	return m
}

// run runs the command service.
func (m *machine) run(t *testing.T, env map[string]string, args ...string) *ran {
	t.Helper()
	r := &ran{t: t}
	c, err := config.Load(append([]string{"service"}, args...), clitest.Environment(env), new(config.Config))
	if err != nil {
		r.code = exit.Refuse(&r.log, err)
		return r
	}
	r.code = (&Command{Stdout: &r.out, Stderr: &r.log, LookupEnv: clitest.Environment(env)}).Service(c, m.System)
	return r
}

// The service of systemd has whole paths and no secret, is started, and goes again. It says whether it ends with the
// session of its user.
func TestServiceOfSystemd(t *testing.T) {
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": t.TempDir(), "PATH": "/usr/bin:/bin", "KEY": secret}
	ssetest.Must(t, os.WriteFile("servers.yaml", []byte("servers: {a: {command: [x], env: {K: '${KEY}'}}}\n"), 0o600))
	m := newMachine(t, "linux")
	p := m.run(t, env, "status")
	p.wantExit(exit.Failure)
	ssetest.WantText(t, "without one", p.out.String(), "There is no service")
	p = m.run(t, env, "install", "--config", "servers.yaml")
	p.wantExit(exit.OK)
	whole, err := filepath.Abs("servers.yaml")
	ssetest.Must(t, err)
	unit := text(t, filepath.Join(m.ConfigHome, "systemd", "user", "sse-server.service"))
	for _, want := range []string{
		`ExecStart="/opt/a b/sse-server" "--shared=/state/run/daemon-30000-aa.sock" "--of-file" "--config=` + whole + `" "--watch" "--no-start-check"` + "\n",
		"WorkingDirectory=" + filepath.Dir(whole) + "\n", `Environment="PATH=/usr/bin:/bin"` + "\n", "WantedBy=default.target\n",
	} {
		ssetest.WantText(t, "the unit", unit, want)
	}
	if strings.Contains(unit, secret) {
		t.Errorf("the unit has a secret:\n%s", unit)
	}
	ssetest.WantText(t, "a variable that it does not get", p.log.String(), "refers to the variable KEY")
	ssetest.WantText(t, "lingering", p.out.String(), "Lingering is off: without it the service ends when you log out. To switch it on:\n\n    loginctl enable-linger\n")
	ssetest.Want(t, "commands", m.ran[:2], []string{"systemctl --user daemon-reload", "systemctl --user enable --now sse-server.service"})

	m.linger = "yes"
	p = m.run(t, env, "install", "--config", "servers.yaml") // once more
	p.wantExit(exit.OK)
	ssetest.WantText(t, "lingering", p.out.String(), "Lingering is on")
	ssetest.Must(t, os.WriteFile("other.yaml", []byte("servers: {a: {command: [x]}}\n"), 0o600))
	p = m.run(t, env, "install", "--config", "other.yaml")
	p.wantExit(exit.Failure)
	ssetest.WantText(t, "another file", p.log.String(), "is there already, and differs: sse-server service uninstall removes it")
	m.run(t, env, "uninstall").wantExit(exit.OK)
	m.run(t, env, "uninstall").wantExit(exit.Failure)
	m.fails = "enable --now"
	p = m.run(t, env, "install", "--config", "servers.yaml")
	p.wantExit(exit.Failure)
	ssetest.WantText(t, "the command that failed", p.log.String(), "systemctl --user enable --now sse-server.service: exit status 1\nno bus\n")
}

// The status is what systemctl says, with its exit code, and whether the service outlives the session of its user.
func TestServiceStatusIsThatOfTheSystem(t *testing.T) {
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": t.TempDir(), "PATH": "/usr/bin:/bin"}
	ssetest.Must(t, os.WriteFile("servers.yaml", []byte("servers: {a: {command: [x]}}\n"), 0o600))
	m := newMachine(t, "linux")
	m.run(t, env, "install", "--config", "servers.yaml").wantExit(exit.OK)
	for code, says := range map[int]string{0: "Active: active (running)\n", 3: "Active: inactive (dead)\n"} {
		m.ran, m.status, m.exits = nil, says, code
		p := m.run(t, env, "status")
		p.wantExit(code)
		ssetest.WantText(t, "the status", p.out.String(), says, "Lingering is off")
		ssetest.Want(t, "the first command", m.ran[0], "systemctl --user status --no-pager sse-server.service")
	}
	m.fails = "--user status"
	p := m.run(t, env, "status")
	p.wantExit(exit.Failure)
	ssetest.WantText(t, "what is known", p.out.String(), "no bus\n")
	ssetest.WantText(t, "why there is no status", p.log.String(),
		"systemctl --user status --no-pager sse-server.service: exit status 1\n")
}

// A file that somebody has edited after install stays, with its service, and it is said how to remove them.
func TestServiceThatSomebodyHasEditedStays(t *testing.T) {
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": t.TempDir(), "PATH": "/usr/bin"}
	ssetest.Must(t, os.WriteFile("servers.yaml", []byte("servers: {a: {command: [x]}}\n"), 0o600))
	m := newMachine(t, "linux")
	m.run(t, env, "install", "-c", "servers.yaml").wantExit(exit.OK)
	file := filepath.Join(m.ConfigHome, "systemd", "user", unitName)
	written := text(t, file)
	m.ran = nil
	const todo = "keep what you need of it, " +
		"run systemctl --user disable --now sse-server.service, and delete the file\n"
	for _, edited := range []string{
		strings.Replace(written, "Restart=on-failure\n", "Restart=always\n", 1),
		written + "# mine\n",
		written[:len(written)-1],
		strings.Replace(written, " sha256:", " sha256:0", 1),
		written[:strings.Index(written, mark)+len(mark)+20],
	} {
		ssetest.Must(t, os.WriteFile(file, []byte(edited), 0o600))
		for do, want := range map[string]string{
			"uninstall": " was edited after service install: nothing is stopped or removed; ",
			"install":   " is there already, and was edited after service install: ",
		} {
			p := m.run(t, env, strings.Fields(do+" -c servers.yaml")...)
			p.wantExit(exit.Failure)
			ssetest.Want(t, do, p.log.String(), "sse-server: "+file+want+todo)
		}
		ssetest.Want(t, "the file", text(t, file), edited)
		ssetest.Want(t, "commands", len(m.ran), 0)
	}
}

// A file that install has not written stays, with its service, and is named.
func TestServiceOfSomebodyElseStays(t *testing.T) {
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": t.TempDir(), "PATH": "/usr/bin"}
	ssetest.Must(t, os.WriteFile("servers.yaml", []byte("servers: {a: {command: [x]}}\n"), 0o600))
	for system, folder := range map[string][]string{"linux": nil, "darwin": {"Library", "LaunchAgents"}, "windows": {".local", "state", "sse-server"}} {
		m := newMachine(t, system)
		file := filepath.Join(m.ConfigHome, "systemd", "user", unitName)
		if folder != nil {
			name := map[string]string{"darwin": agentName + ".plist", "windows": "sse-server-task.xml"}[system]
			file = filepath.Join(append([]string{env["HOME"]}, append(folder, name)...)...)
		}
		m.run(t, env, "install", "-c", "servers.yaml").wantExit(exit.OK)
		written := text(t, file)
		m.ran = nil
		for _, content := range []string{"[Unit]\n# " + mark + "\n", "", strings.Replace(written, mark, "mine", 1)} {
			ssetest.Must(t, os.WriteFile(file, []byte(content), 0o600))
			for do, want := range map[string]string{
				"uninstall": " is not of service install: nothing is stopped or removed",
				"install":   " is there already, and is not of service install: move it away first\n",
			} {
				p := m.run(t, env, strings.Fields(do+" -c servers.yaml")...)
				p.wantExit(exit.Failure)
				ssetest.WantText(t, system+" "+do, p.log.String(), "sse-server: "+file+want)
			}
			ssetest.Want(t, system+": the file", text(t, file), content)
			ssetest.Want(t, system+": commands", len(m.ran), 0)
		}
		ssetest.Must(t, os.WriteFile(file, []byte(written), 0o600))
		m.run(t, env, "uninstall").wantExit(exit.OK)
		if _, err := os.Lstat(file); err == nil {
			t.Errorf("%s: %s is still there", system, file)
		}
	}
}

// A program that goes by itself is refused, with what to do, and so is what no client could share.
func TestServiceIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": t.TempDir()}
	ssetest.Must(t, os.WriteFile("one.yaml", []byte("servers: {a: {command: [x]}}\n"), 0o600))
	ssetest.Must(t, os.WriteFile("two.yaml", []byte("servers: {a: {command: [x]}, b: {command: [y]}}\n"), 0o600))
	for _, test := range []struct{ program, args, want string }{
		{filepath.Join(os.TempDir(), "x", "sse-server"), "install -c one.yaml", "is in a temporary folder: put sse-server where it stays, such as ~/.local/bin"},
		{"/home/a/.npm/_npx/1/node_modules/mcp-sse/sse-server", "install -c one.yaml", "is in a folder of npx or npm"},
		{"sse-server", "install -c one.yaml", "the path of this program is not known"},
		{"/opt/sse-server", "install", "service: want --config FILE"},
		{"/opt/sse-server", "install -c two.yaml", "and it has a, b: name the view that clients get gateway"},
		{"/opt/sse-server", "install -c one.yaml --addr 127.0.0.1:1", "not with --addr"},
		{"/opt/sse-server", "remove", `service: want one of install, uninstall, status, but got "remove"`},
	} {
		m := newMachine(t, "linux")
		m.Program = test.program
		p := m.run(t, env, strings.Fields(test.args)...)
		p.wantExit(exit.Config)
		ssetest.WantText(t, test.program+" "+test.args, p.log.String(), test.want)
		ssetest.Want(t, "commands", len(m.ran), 0)
	}
}

// The files for the other systems are well-formed, and nobody has tried them.
func TestServiceOfOtherSystems(t *testing.T) {
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": t.TempDir(), "PATH": "/usr/bin"}
	ssetest.Must(t, os.WriteFile("a&b.yaml", []byte("servers: {a: {command: [x]}}\n"), 0o600))
	for system, file := range map[string]string{
		"darwin":  filepath.Join(env["HOME"], "Library", "LaunchAgents", "io.github.mcp-sse.sse-server.plist"),
		"windows": filepath.Join(env["HOME"], ".local", "state", "sse-server", "sse-server-task.xml"),
	} {
		m := newMachine(t, system)
		p := m.run(t, env, "install", "-c", "a&b.yaml")
		p.wantExit(exit.OK)
		ssetest.WantText(t, system, p.out.String(), "Nobody has tried services on this system yet")
		content := text(t, file)
		ssetest.WantText(t, system, content, "a&amp;b.yaml")
		for d := xml.NewDecoder(strings.NewReader(content)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", system, err, content)
			}
		}
	}
	p := newMachine(t, "plan9").run(t, env, "status")
	p.wantExit(exit.Config)
	ssetest.WantText(t, "another system", p.log.String(), "nothing is known of services on plan9")
}
