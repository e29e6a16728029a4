package background

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// load loads a configuration that must be right.
func load(t *testing.T, env map[string]string, args ...string) *config.Config {
	t.Helper()
	c, err := config.Load(args, clitest.Environment(env), new(config.Config))
	ssetest.Must(t, err)
	return c
}

// windowOf is a program that shares the sse-server with the name 8080.
func windowOf(t *testing.T, env map[string]string, args ...string) *Shared {
	t.Helper()
	args = append([]string{"stdio", "--connect", "http://127.0.0.1:8080/mcp"}, args...)
	s, err := Connect(load(t, env, args...), nil, slog.New(slog.DiscardHandler))
	ssetest.Must(t, err)
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// Where windows meet their sse-server nobody else can come in, or be taken for it.
func TestSocketIsInADirectoryOfThisUserAlone(t *testing.T) {
	env := clitest.State(t)
	s := windowOf(t, env, "--", "x")
	run := filepath.Join(env["XDG_STATE_HOME"], "sse-server", "run")
	ssetest.WantText(t, "the socket", s.socket, filepath.Join(run, "daemon-8080-"))
	info, err := os.Stat(run)
	ssetest.Must(t, err)
	ssetest.Want(t, "mode of the directory", info.Mode().Perm(), os.FileMode(0o700))
	l, err := Listen(t.Context(), s.socket)
	ssetest.Must(t, err)
	info, err = os.Stat(s.socket)
	ssetest.Must(t, err)
	ssetest.Want(t, "mode of the socket", info.Mode().Perm(), os.FileMode(0o600))
	ssetest.Must(t, l.Close())

	ssetest.Must(t, os.Chmod(run, 0o710))
	_, err = Connect(load(t, env, "stdio", "--connect", "http://127.0.0.1:8080/mcp", "--", "x"), nil, slog.New(slog.DiscardHandler))
	ssetest.WantText(t, "the error", fmt.Sprint(err), "other users can open "+run+": chmod 700 it")
	_, err = s.Dial(t.Context()) // also if it was opened since
	ssetest.WantText(t, "the error", fmt.Sprint(err), "other users can open "+run)
	_, err = Listen(t.Context(), s.socket)
	ssetest.WantText(t, "the error", fmt.Sprint(err), "other users can open "+run)
}

// The directory of the user's login is used if it is one, else that of the state.
func TestRuntimeDirectoryHasTheSocket(t *testing.T) {
	env := clitest.State(t)
	runtime := clitest.State(t)["XDG_STATE_HOME"]
	env["XDG_RUNTIME_DIR"] = runtime
	ssetest.Want(t, "the socket", windowOf(t, env, "--", "x").socket, filepath.Join(runtime, "sse-server", "daemon-8080.sock"))
	ssetest.Must(t, os.Chmod(runtime, 0o755))
	ssetest.WantText(t, "the socket", windowOf(t, env, "--", "x").socket, filepath.Join(env["XDG_STATE_HOME"], "sse-server", "run", "daemon-8080-"))
}

// Machines that share a home directory have a socket each, and locks of their own: a lock can reach from one to the
// other.
func TestMachinesWithOneHomeDirectoryDoNotMeet(t *testing.T) {
	c := load(t, clitest.State(t), "stdio", "--connect", "http://127.0.0.1:8080/mcp", "--", "x")
	socket := func(host string) string { return clitest.Must(socketOf(c, "8080", host)) }
	one := socket("one")
	ssetest.Want(t, "the socket of the same host", socket("one"), one)
	if two := socket("two." + strings.Repeat("example.", 30)); two == one || len(two) != len(one) {
		t.Errorf("two machines: %s and %s", one, two)
	}
}

func TestPathOfASocketIsBounded(t *testing.T) {
	env := clitest.State(t)
	env["XDG_STATE_HOME"] = filepath.Join(env["XDG_STATE_HOME"], strings.Repeat("long", 30))
	_, err := Connect(load(t, env, "stdio", "--connect", "http://127.0.0.1:8080/mcp", "--", "x"), nil, slog.New(slog.DiscardHandler))
	ssetest.WantText(t, "the error", fmt.Sprint(err), "is too long for a socket: set XDG_RUNTIME_DIR")
}

// One that has been killed leaves a socket, which the next one replaces. One that stops does not touch that of the
// next.
func TestSocketBelongsToWhoeverHoldsItsLock(t *testing.T) {
	s := windowOf(t, clitest.State(t), "--", "x")
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.socket, Net: "unix"})
	ssetest.Must(t, err)
	killed.SetUnlinkOnClose(false)
	ssetest.Must(t, killed.Close())
	who, err := s.ask(t.Context())
	if who != nil || err != nil {
		t.Errorf("at a stale socket: %v, %v", who, err)
	}
	first, err := Listen(t.Context(), s.socket)
	ssetest.Must(t, err)
	ssetest.Must(t, first.Close())
	second, err := Listen(t.Context(), s.socket)
	ssetest.Must(t, err)
	_ = first.Close()
	conn, err := net.Dial("unix", s.socket)
	ssetest.Must(t, err)
	ssetest.Must(t, conn.Close())
	ssetest.Must(t, second.Close())
	if _, err := os.Lstat(s.socket); err == nil {
		t.Error("it left its socket")
	}
}

// One that stops leaves the socket of the next one, also where somebody has deleted the files of its lock meanwhile,
// and knows that it cannot be reached.
func TestSocketOfTheNextOneStaysWhereTheLockWasDeleted(t *testing.T) {
	s := windowOf(t, clitest.State(t), "--", "x")
	first, err := Listen(t.Context(), s.socket)
	ssetest.Must(t, err)
	ssetest.Want(t, "it can be reached", first.(*Listener).IsReachable(), true)
	ssetest.Must(t, os.Remove(s.socket+".lock"))
	ssetest.Must(t, os.Remove(s.socket))
	ssetest.Want(t, "it can be reached without its socket", first.(*Listener).IsReachable(), false)
	second, err := Listen(t.Context(), s.socket)
	ssetest.Must(t, err)
	ssetest.Want(t, "it can be reached behind that of another", first.(*Listener).IsReachable(), false)
	_ = first.Close()
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatalf("the first one has removed the socket of the second: %v", err)
	}
	ssetest.Must(t, conn.Close())
	ssetest.Must(t, second.Close())
}

// A file of one that was killed, at any moment of its start or end, keeps nobody from the socket.
func TestFilesOfAKilledOneBlockNobody(t *testing.T) {
	for name, left := range map[string][]string{
		"before it starts one":   {".start"},
		"before it listens":      {".start", ".lock"},
		"while it listens":       {".start", ".lock", ""},
		"before it had its mode": {".lock", ""},
		"after it has listened":  {".lock"},
	} {
		t.Run(name, func(t *testing.T) {
			s := windowOf(t, clitest.State(t), "--", "x")
			for _, file := range left {
				ssetest.Must(t, os.WriteFile(s.socket+file, nil, 0o644))
			}
			who, err := s.ask(t.Context())
			if who != nil || err != nil {
				t.Errorf("got %v, %v", who, err)
			}
			start := flock.New(s.socket + ".start")
			if free, err := start.TryLock(); !free {
				t.Errorf("nobody can start one: %v", err)
			}
			ssetest.Must(t, start.Close())
			l, err := Listen(t.Context(), s.socket)
			ssetest.Must(t, err)
			info, err := os.Stat(s.socket)
			ssetest.Must(t, err)
			ssetest.Want(t, "mode of the socket", info.Mode(), os.ModeSocket|0o600)
			ssetest.Must(t, l.Close())
		})
	}
}

// serveAs serves who at the socket of s.
func serveAs(t *testing.T, s *Shared, who http.Handler) {
	t.Helper()
	l, err := Listen(t.Context(), s.socket)
	ssetest.Must(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: who}}
	server.Start()
	t.Cleanup(server.Close)
}

// Each thing that decides what is served must be the same, and an error names what is not, without values.
func TestAnotherServerOfTheSameName(t *testing.T) {
	env, dir := clitest.State(t), t.TempDir()
	file := filepath.Join(dir, "env")
	ssetest.Must(t, os.WriteFile(file, []byte("A=1\n"), 0o600))
	t.Chdir(dir)
	t.Setenv("SSH_HOST", "secret-dev")
	t.Setenv("TERM_PROGRAM", "one")
	same := []string{"--env-file", file, "--env", "K=secret-1", "--", "sh", "a"}
	first := windowOf(t, env, same...)
	serveAs(t, first, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(greeting{PID: 4711, Instance: "one", Parts: first.parts})
	}))
	for name, tt := range map[string]struct {
		change func(t *testing.T)
		args   []string
		want   string
	}{
		"nothing":        {nil, same, ""},
		"the terminal":   {func(t *testing.T) { t.Setenv("TERM_PROGRAM", "two"); t.Setenv("TMUX", "x") }, same, ""},
		"an argument":    {nil, append(same[:len(same)-1:len(same)-1], "b"), "the command"},
		"an option":      {nil, append([]string{"--warm", "2"}, same...), "the option --warm"},
		"an env":         {nil, []string{"--env-file", file, "--env", "K=secret-2", "--", "sh", "a"}, "the option --env K"},
		"a variable":     {func(t *testing.T) { t.Setenv("SSH_HOST", "secret-prod") }, same, "the variable SSH_HOST"},
		"a variable new": {func(t *testing.T) { t.Setenv("SSH_PASSWORD", "secret-x") }, same, "the variable SSH_PASSWORD"},
		"a variable bad": {func(t *testing.T) { t.Setenv("SSH_HOST", "secret-\xff") }, same, "the variable SSH_HOST"},
		"the directory":  {func(t *testing.T) { t.Chdir(t.TempDir()) }, same, "the directory: stop it (kill 4711), or give --connect another port; with --dir DIR"},
		"the file": {func(t *testing.T) {
			ssetest.Must(t, os.WriteFile(file, []byte("A=2\n"), 0o600))
			t.Cleanup(func() { ssetest.Must(t, os.WriteFile(file, []byte("A=1\n"), 0o600)) })
		}, same, "the file " + file},
		"the program": {func(t *testing.T) {
			other := t.TempDir()
			ssetest.Must(t, os.WriteFile(filepath.Join(other, "sh"), []byte("#!/bin/true\n"), 0o700))
			t.Setenv("PATH", other+string(os.PathListSeparator)+os.Getenv("PATH"))
		}, same, "the program that PATH has for sh"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(t)
			}
			other := windowOf(t, env, tt.args...)
			who, err := other.ask(t.Context())
			ssetest.Must(t, err)
			err = who.differenceFrom(other.parts)
			if tt.want == "" {
				ssetest.Must(t, err)
				return
			}
			ssetest.WantText(t, "the error", fmt.Sprint(err), "the sse-server of this name differs in "+tt.want)
			if strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("it has a value: %v", err)
			}
			_, err = other.Dial(t.Context())
			ssetest.WantText(t, "the error of Dial", fmt.Sprint(err), tt.want)
		})
	}
}

// A shared server describes itself as the programs that have started it want it, however its options are written.
func TestStartedServerIsTheOneThatIsWanted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	ssetest.Must(t, os.WriteFile(file, []byte("A=1\n"), 0o600))
	env := clitest.State(t)
	for _, args := range []string{
		"-- sh", "--exit-unused 5m --warm 2 --warm 3 -- sh", "--env A=1 --env B=2,3 --env-file " + file + " -- sh -c x", "--log-level=debug --no-remember --admin-addr 127.0.0.1:0 -- sh",
		"--url http://127.0.0.1:1/mcp --header A:1 --header B:2 --transports sse,streamable",
	} {
		window := windowOf(t, env, strings.Fields(args)...)
		own := append([]string{"--shared=" + window.socket}, window.args...)
		if err := (&greeting{Parts: PartsOf(load(t, env, own...), own)}).differenceFrom(window.parts); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// With --dir, and no other relative path, it is the same from each directory.
func TestOneServerForAllDirectories(t *testing.T) {
	dir, env := t.TempDir(), clitest.State(t)
	parts := func(args ...string) map[string]string { return windowOf(t, env, append(args, "--", "sh")...).parts }
	t.Chdir(t.TempDir())
	whole, relative := parts("--dir", dir), parts("--dir", ".")
	t.Chdir(t.TempDir())
	if !maps.Equal(whole, parts("--dir", dir)) {
		t.Error("with --dir the directory counts")
	}
	if maps.Equal(relative, parts("--dir", ".")) {
		t.Error("a relative --dir is not that of the other directory")
	}
}

// A folder that a link leads to is the same for a window, which knows the link by PWD, and for the server, which does
// not.
func TestFolderBehindALinkIsOne(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Skip(err)
	}
	t.Chdir(link)
	t.Setenv("PWD", link)
	s := windowOf(t, clitest.State(t), "--", "sh")
	t.Setenv("PWD", "")
	ssetest.Must(t, (&greeting{Parts: PartsOf(s.config, s.args)}).differenceFrom(s.parts))
}

// With --dir the folder of a window is nothing to the server, whatever an editor says of it, unless the configuration
// names that.
func TestFolderOfAWindowIsNothingToOneServerForAllDirectories(t *testing.T) {
	dir, env := t.TempDir(), clitest.State(t)
	file := filepath.Join(t.TempDir(), "gw.yaml")
	ssetest.Must(t, os.WriteFile(file, []byte("command: [sh]\nenv: {PROJECT: \"${CLAUDE_PROJECT_DIR}\"}\ndir: "+dir+"\n"), 0o600))
	for name, tt := range map[string]struct {
		args []string
		same bool
	}{
		"with --dir":       {[]string{"--dir", dir, "--", "sh"}, true},
		"without":          {[]string{"--", "sh"}, false},
		"in the file":      {[]string{"--config", file}, false},
		"in the env-allow": {[]string{"--dir", dir, "--env-allow", "PATH,CLAUDE_PROJECT_DIR", "--", "sh"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(project string) *Shared {
				env["CLAUDE_PROJECT_DIR"] = project
				t.Setenv("CLAUDE_PROJECT_DIR", project)
				return windowOf(t, env, tt.args...)
			}
			one := of("/one")
			two := of("/two")
			ssetest.Want(t, "one server for two folders", maps.Equal(one.parts, two.parts), tt.same)
			inherits := slices.Contains(inheritable(two.config, os.Environ()), "CLAUDE_PROJECT_DIR=/two")
			ssetest.Want(t, "it is inherited", inherits, !tt.same)
		})
	}
}

// A file that refers to a variable of a terminal means something else in each window: windows that differ in it do not
// share, and the sse-server that is started has it. PATH is as it is for all.
func TestVariableThatAFileNamesIsAPart(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"in env":       "command: [cat]\nenv: {A: \"${PWD:-none}\", B: \"${TMUX:-none}\", C: \"${PATH}\"}\n",
		"in command":   "command: [cat, \"${PWD}\", \"${TMUX:-none}\"]\n",
		"in a URL":     "url: \"https://example.com/${PWD}/${TMUX}\"\n",
		"in env-allow": "command: [cat]\nenv-allow: [PWD, TMUX]\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "servers.yaml")
			ssetest.Must(t, os.WriteFile(file, []byte(content+"dir: "+dir+"\n"), 0o600))
			if strings.HasPrefix(content, "url") {
				ssetest.Must(t, os.WriteFile(file, []byte(content), 0o600))
			}
			env := clitest.State(t)
			window := func(pwd, tmux, path string) *Shared {
				for name, value := range map[string]string{"PWD": pwd, "TMUX": tmux, "PATH": path} {
					env[name] = value
					t.Setenv(name, value)
				}
				return windowOf(t, env, "--config", file)
			}
			one := window("one", "1", "/usr/bin")
			for _, variable := range []string{"PWD=one", "TMUX=1", "PATH=/usr/bin"} {
				ssetest.Want(t, "the shared one has "+variable, slices.Contains(inheritable(one.config, os.Environ()), variable), true)
			}
			ssetest.Want(t, "in another folder it is the same", maps.Equal(window("two", "1", "/usr/bin").parts, one.parts), false)
			ssetest.Want(t, "in another terminal it is the same", maps.Equal(window("one", "2", "/usr/bin").parts, one.parts), false)
			agents := t.TempDir() + string(os.PathListSeparator) + "/usr/bin"
			ssetest.Want(t, "with the PATH of a session it is the same", maps.Equal(window("one", "1", agents).parts, one.parts), true)
		})
	}
}

// PATH chooses code, so it is a part, and what a window has there for one session is not inherited.
func TestPathIsAPart(t *testing.T) {
	env := clitest.State(t)
	args := []string{"--dir", t.TempDir(), "--", "/bin/sh"}
	parts := func(path string) map[string]string {
		t.Setenv("PATH", path)
		return windowOf(t, env, args...).parts
	}
	list := string(os.PathListSeparator)
	one := parts("/usr/bin")
	if maps.Equal(one, parts("/clone/bin"+list+"/usr/bin")) {
		t.Error("programs of a folder are no part")
	}
	if !maps.Equal(one, parts(t.TempDir()+list+"node_modules/.bin"+list+"/usr/bin")) {
		t.Error("programs of one session are a part")
	}
	s := windowOf(t, env, args...)
	got := inheritable(s.config, []string{"PATH=" + t.TempDir() + list + "/usr/bin"})
	ssetest.Want(t, "PATH", fmt.Sprint(got), "[PATH=/usr/bin]")
}

// A script of an interpreter that PATH finds is another program with another interpreter.
func TestInterpreterIsAPartOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "npx")
	ssetest.Must(t, os.WriteFile(script, []byte("#!/usr/bin/env -S node --flag\n"), 0o700))
	node := filepath.Join(dir, "node")
	ssetest.Must(t, os.WriteFile(node, []byte("#!/bin/sh\n"), 0o700))
	t.Setenv("PATH", dir)
	if got := programsOf("npx"); !slices.Equal(got, []string{script, node}) {
		t.Errorf("got %q", got)
	}
}

// A variable that says where a window is does not reach the servers of others.
func TestSharedServerInheritsNoTerminal(t *testing.T) {
	got := inheritable(load(t, clitest.State(t), "--", "x"), []string{"PATH=/bin", "TERM=xterm", "SSH_TTY=/dev/pts/1", "SSH_HOST=prod", "HOME=/home/ada"})
	if want := []string{"PATH=/bin", "SSH_HOST=prod", "HOME=/home/ada"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A request for one sse-server is not served by the next one at the same socket.
func TestRequestReachesTheServerThatItIsFor(t *testing.T) {
	c, served := load(t, clitest.State(t), "--", "x"), 0
	h := ForWindows(func() map[string]string { return PartsOf(c, nil) }, NewBrowsers(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	ask := func(path, instance string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Header.Set(instanceHeader, instance)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	var who greeting
	ssetest.Must(t, json.NewDecoder(ask(greetingPath, "").Body).Decode(&who))
	for _, other := range []string{"", "another"} {
		ssetest.Want(t, "status for another", ask("/mcp", other).Code, http.StatusNotFound)
	}
	ssetest.Want(t, "served", served, 0)
	ssetest.Want(t, "status", ask("/mcp", who.Instance).Code, http.StatusOK)
	ssetest.Want(t, "served", served, 1)
}

// The program at the socket must say which one it is.
func TestAnotherProgramAtTheSocket(t *testing.T) {
	for name, answer := range map[string]string{"no JSON": "hello", "another JSON": "{}"} {
		t.Run(name, func(t *testing.T) {
			s := windowOf(t, clitest.State(t), "--", "x")
			serveAs(t, s, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
			_, err := s.Dial(t.Context())
			ssetest.WantText(t, "the error", fmt.Sprint(err), "gives no sensible answer")
		})
	}
}

// Why a shared server has ended is not what was in its log before, nor what servers have written there.
func TestReasonOfAnEndIsNotOfAnEarlierOne(t *testing.T) {
	log := filepath.Join(t.TempDir(), "daemon-8080.log")
	ssetest.Must(t, os.WriteFile(log, []byte("sse-server: of an earlier one\n"), 0o600))
	if got := whyEnded(log, 30); got != "see "+log {
		t.Errorf("got %q", got)
	}
}

// A gateway that connects to a shared one by its name may be below others, but not below that one.
func TestGatewayAboveIsNotConnectedTo(t *testing.T) {
	for parents, want := range map[string]string{
		"4712/mcp": "differs in", "": "differs in", "4710/mcp,4711/mcp": "has started this one",
		"4711/mcp,4712/mcp": "has started this one", "4711/docs/mcp": "differs in", // another server of that gateway
	} {
		env := clitest.State(t)
		env[environ.ParentsVariable] = parents
		s := windowOf(t, env, "--", "x")
		serveAs(t, s, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(greeting{PID: 4711, Instance: "one"})
		}))
		_, err := s.Dial(t.Context())
		ssetest.WantText(t, "the error below "+parents, fmt.Sprint(err), want)
	}
}

// A window that has started before somebody changed the file wants what the file says now, also with other variables,
// and shares the sse-server that has read it again. While the file is broken both keep what they have.
func TestWindowOfAFileFollowsTheFile(t *testing.T) {
	env, file := clitest.State(t), filepath.Join(t.TempDir(), "servers.yaml")
	write := func(content string) { ssetest.Must(t, os.WriteFile(file, []byte(content), 0o600)) }
	window := func() *Shared {
		s, err := Connect(load(t, env, "stdio", "--connect", "--config", file), nil, slog.New(slog.DiscardHandler))
		ssetest.Must(t, err)
		t.Cleanup(s.client.CloseIdleConnections)
		return s
	}
	runs := filepath.Join(t.TempDir(), "runs")
	secret := "url: 'https://mcp.example.com/mcp', header: {X: {exec: [/bin/sh, -c, 'echo run >> " + runs + "; echo s']}}"
	write("servers: {a: {" + secret + "}}\n")
	first := window()
	var parts atomic.Pointer[map[string]string] // of the one that is shared
	parts.Store(&first.parts)
	serveAs(t, first, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(greeting{PID: 4711, Instance: "one", Parts: *parts.Load()})
	}))
	refusal := func() string {
		conn, err := first.Dial(t.Context())
		if err == nil {
			ssetest.Must(t, conn.Close())
		}
		return fmt.Sprint(err)
	}
	if why := refusal(); strings.Contains(why, "differs") {
		t.Errorf("before a change: %s", why)
	}
	if got, err := os.ReadFile(runs); err != nil || string(got) != "run\n" {
		t.Errorf("the program that prints a secret: got %q, %v, want one run for a file that has not changed", got, err)
	}
	t.Setenv("TOKEN", "1")
	env["TOKEN"] = "1"
	write("servers: {a: {command: [y], env: {T: '${TOKEN}'}}}\n")
	parts.Store(&window().parts)
	if why := refusal(); strings.Contains(why, "differs") {
		t.Errorf("after a change: %s", why)
	}
	write("servers: {a: {comm")
	if why := refusal(); strings.Contains(why, file) {
		t.Errorf("the shared one has what the file said before: %s", why)
	}
	parts.Store(&first.parts)
	ssetest.WantText(t, "the error with a broken file", refusal(), file+":")
}
