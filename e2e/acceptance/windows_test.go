package acceptance

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// window is an sse-server stdio --connect, as each window of an editor starts one.
type window struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Reader
	log   ssetest.Output
	calls int
	close func() // ends it, once
	send  func(os.Signal)
}

// openWindow starts a window that shares the sse-server with the name of a port. env is added to its environment.
func openWindow(t *testing.T, port string, env ...string) *window {
	t.Helper()
	self, err := os.Executable()
	ssetest.Must(t, err)
	w := &window{t: t}
	cmd := exec.Command(sseServer, "stdio", "--connect", "http://127.0.0.1:"+port+"/mcp",
		"--env", scriptVariable+"=names answers", "--initialization-timeout", "1h", "--start-timeout", "1h", "--", self)
	cmd.Env = append(ssetest.WithState(t), env...)
	cmd.Stderr = &w.log
	w.in, err = cmd.StdinPipe()
	ssetest.Must(t, err)
	out, err := cmd.StdoutPipe()
	ssetest.Must(t, err)
	w.out = bufio.NewReader(out)
	ssetest.Must(t, cmd.Start())
	w.send = func(signal os.Signal) { ssetest.Must(t, cmd.Process.Signal(signal)) }
	w.close = sync.OnceFunc(func() {
		_ = w.in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		w.close() // first: it starts the next one as soon as its daemon is killed
		for _, pid := range w.daemons() {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("log of the window:\n%s", w.log.Tail())
		}
	})
	return w
}

// echo has the server say a text, and returns the answer.
func (w *window) echo(text string) string {
	w.t.Helper()
	w.calls++
	_, err := fmt.Fprintf(w.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`+"\n", w.calls, text)
	ssetest.Must(w.t, err)
	for {
		line, err := w.out.ReadString('\n')
		ssetest.Must(w.t, err)
		if strings.Contains(line, fmt.Sprintf(`"id":%d,`, w.calls)) {
			return line
		}
	}
}

var startedDaemon = regexp.MustCompile(`shared sse-server started.*pid=(\d+)`)

// daemons returns the processes of the shared sse-servers that this window has started.
func (w *window) daemons() (pids []int) {
	for _, found := range startedDaemon.FindAllStringSubmatch(w.log.String(), -1) {
		pid, _ := strconv.Atoi(found[1])
		pids = append(pids, pid)
	}
	return pids
}

// socketOfWindows returns the path of the socket at which they meet.
func socketOfWindows(t *testing.T, port string) string {
	t.Helper()
	sockets, err := filepath.Glob(filepath.Join(ssetest.StateDir(t), "sse-server", "run", "daemon-"+port+"-*.sock"))
	ssetest.Must(t, err)
	ssetest.Want(t, "sockets", len(sockets), 1)
	return sockets[0]
}

// portOf holds a port as a stranger's program does, and counts who connects to it.
func portOf(t *testing.T) (port string, connections func() int64) {
	t.Helper()
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	var n atomic.Int64
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		for {
			conn, err := stranger.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = stranger.Close()
		<-done
	})
	_, port, err = net.SplitHostPort(stranger.Addr().String())
	ssetest.Must(t, err)
	return port, n.Load
}

func TestWindowsShareADaemonThatIsPrivateToItsUser(t *testing.T) {
	t.Parallel()
	port, connections := portOf(t)
	first, second := openWindow(t, port), openWindow(t, port, "TERM_PROGRAM=another")
	for _, w := range []*window{first, second} {
		ssetest.WantText(t, "the answer", w.echo("hi"), `"text":"hi"`)
	}
	daemons := append(first.daemons(), second.daemons()...)
	ssetest.Want(t, "daemons", len(daemons), 1)
	socket := socketOfWindows(t, port)
	for path, want := range map[string]os.FileMode{filepath.Dir(socket): os.ModeDir | 0o700, socket: os.ModeSocket | 0o600} {
		info, err := os.Lstat(path)
		ssetest.Must(t, err)
		ssetest.Want(t, "mode of "+path, info.Mode(), want)
		ssetest.Want(t, "owner of "+path, info.Sys().(*syscall.Stat_t).Uid, uint32(os.Geteuid()))
	}
	if ports := listensAt(t, daemons[0]); len(ports) > 0 {
		t.Errorf("the daemon listens at the ports %q", ports)
	}
	ssetest.Want(t, "connections to the stranger at the port", connections(), 0)
}

// listensAt returns the local addresses, as the system writes them, at which a process listens with TCP.
func listensAt(t *testing.T, pid int) (all []string) {
	t.Helper()
	open := map[string]bool{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	ssetest.Must(t, err)
	for _, file := range files {
		to, _ := os.Readlink(file)
		open[to] = true
	}
	if len(open) == 0 {
		t.Fatal("nothing is known of the open files of the daemon")
	}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if table == "tcp6" && os.IsNotExist(err) { // a system without IPv6
			continue
		}
		ssetest.Must(t, err)
		for line := range strings.Lines(string(data)) {
			const listening = "0A"
			if f := strings.Fields(line); len(f) > 9 && f[3] == listening && open["socket:["+f[9]+"]"] {
				all = append(all, f[1])
			}
		}
	}
	return all
}

func TestAWindowWithAnotherVariableIsRefused(t *testing.T) {
	t.Parallel()
	port, _ := portOf(t)
	first := openWindow(t, port, "SSH_HOST=secret-prod")
	ssetest.WantText(t, "the answer", first.echo("hi"), `"text":"hi"`)
	for _, variable := range []string{"SSH_HOST", "SSH_PASSWORD", "KUBERNETES_CONTEXT", "MYSQL_SOCKET", "INSTAGRAM_SESSION_ID", "MY_TOKEN"} {
		answer := openWindow(t, port, "SSH_HOST=secret-prod", variable+"=secret-dev").echo("hi")
		ssetest.WantText(t, "the answer", answer, "differs in the variable "+variable+":")
		if strings.Contains(answer, "secret") {
			t.Errorf("it has a value: %s", answer)
		}
	}
}

func TestADaemonThatWasKilledLeavesNothingThatLetsAnyoneIn(t *testing.T) {
	t.Parallel()
	port, _ := portOf(t)
	first := openWindow(t, port, "SSH_HOST=prod")
	ssetest.WantText(t, "the answer", first.echo("hi"), `"text":"hi"`)
	first.close() // else it starts the next one at once
	ssetest.Must(t, syscall.Kill(first.daemons()[0], syscall.SIGKILL))
	await(t, "its socket is stale", func() bool {
		conn, err := net.Dial("unix", socketOfWindows(t, port))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	other := openWindow(t, port, "SSH_HOST=dev")
	ssetest.WantText(t, "the answer of its own daemon", other.echo("hi"), `"text":"hi"`)
	ssetest.Want(t, "daemons of the other", len(other.daemons()), 1)
	ssetest.WantText(t, "the answer to one as the first was", openWindow(t, port, "SSH_HOST=prod").echo("hi"), "differs in the variable SSH_HOST")
}

func TestADaemonThatIsKilledAtItsStartOrItsEndLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(t *testing.T, port string, first *window){
		"start": func(t *testing.T, _ string, first *window) {
			await(t, "the daemon starts", func() bool { return len(first.daemons()) == 1 })
			first.send(syscall.SIGKILL) // else it starts the next one
		},
		"end": func(t *testing.T, port string, first *window) {
			// A call keeps it from ending, and a window that stands still starts no other one.
			_, err := fmt.Fprintf(first.in, `{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"wait","arguments":{"text":"late","file":%q}}}`+"\n",
				filepath.Join(t.TempDir(), "never"))
			ssetest.Must(t, err)
			ssetest.WantText(t, "the answer, after the call has begun", first.echo("hi"), `"text":"hi"`)
			first.send(syscall.SIGSTOP)
			socket := socketOfWindows(t, port)
			ssetest.Must(t, syscall.Kill(first.daemons()[0], syscall.SIGTERM))
			await(t, "it listens no more", func() bool {
				conn, err := net.Dial("unix", socket)
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			})
			ssetest.Must(t, syscall.Kill(first.daemons()[0], 0)) // it waits for the call
			t.Cleanup(func() { first.send(syscall.SIGKILL) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port, _ := portOf(t)
			first := openWindow(t, port, "SSH_HOST=prod")
			kill(t, port, first)
			ssetest.Must(t, syscall.Kill(first.daemons()[0], syscall.SIGKILL))
			other := openWindow(t, port, "SSH_HOST=dev")
			ssetest.WantText(t, "the answer of its own daemon", other.echo("hi"), `"text":"hi"`)
			ssetest.Want(t, "daemons of the other", len(other.daemons()), 1)
			ssetest.WantText(t, "the answer to one as the first was", openWindow(t, port, "SSH_HOST=prod").echo("hi"), "differs in the variable SSH_HOST")
		})
	}
}

func TestADaemonThatStopsLeavesTheNextOneAlone(t *testing.T) {
	t.Parallel()
	port, _ := portOf(t)
	first := openWindow(t, port)
	ssetest.WantText(t, "the answer", first.echo("hi"), `"text":"hi"`)
	old := first.daemons()[0]
	// A call keeps it from ending.
	file := filepath.Join(t.TempDir(), "go-on")
	_, err := fmt.Fprintf(first.in, `{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"wait","arguments":{"text":"late","file":%q}}}`+"\n", file)
	ssetest.Must(t, err)
	ssetest.WantText(t, "the answer, after the call has begun", first.echo("hi"), `"text":"hi"`)
	ssetest.Must(t, syscall.Kill(old, syscall.SIGTERM))
	second := openWindow(t, port)
	ssetest.WantText(t, "the answer of the next one", second.echo("hi"), `"text":"hi"`)
	await(t, "the next one is there", func() bool { return len(first.daemons())+len(second.daemons()) == 2 })
	ssetest.Must(t, os.WriteFile(file, nil, 0o600))
	await(t, "the old one has ended", func() bool { return syscall.Kill(old, 0) != nil })
	third := openWindow(t, port)
	ssetest.WantText(t, "the answer of the next one", third.echo("hi"), `"text":"hi"`)
	ssetest.Want(t, "daemons of the third window", len(third.daemons()), 0)
}
