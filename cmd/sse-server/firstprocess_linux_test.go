package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// asFirstProcess returns sse-server as the first process of a pid namespace, which needs no program, and a user
// namespace unless this is root.
func asFirstProcess(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childVariable+"="+asProgram)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

// childrenOf returns the children of a process in one of these states, which are letters.
func childrenOf(t *testing.T, parent int, states string) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	ssetest.Must(t, err)
	for _, file := range stats {
		stat, _ := os.ReadFile(file) // it may have gone
		id, _, _ := strings.Cut(string(stat), " ")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && strings.Contains(states, f[0]) && f[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(id)
			pids = append(pids, pid)
		}
	}
	return pids
}

// As the first process of a container it reaps what loses its parent, and ends by the signals that it gets.
func TestFirstProcessReapsOrphans(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	cmd := asFirstProcess("stdio", "--no-remember", "--", "sh", "-c", `for i in 1 2 3 4 5; do (true &); done; touch "$0"; exec cat >/dev/null`, done)
	stdin, err := cmd.StdinPipe()
	ssetest.Must(t, err)
	var log output
	cmd.Stderr = &log
	ssetest.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	_, err = fmt.Fprintln(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	ssetest.Must(t, err)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(ssetest.Patience)
	for {
		if _, err := os.Stat(done); err == nil && len(childrenOf(t, cmd.Process.Pid, "Z")) == 0 {
			break
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it has ended: %v\n%s", err, log.String())
		case <-late:
			t.Fatalf("%d zombies\n%s", len(childrenOf(t, cmd.Process.Pid, "Z")), log.String())
		}
	}
	ssetest.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := <-ended; err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, log.String())
	}
	ssetest.WantText(t, "its log", log.String(), "signal=terminated")
}

// The program gets each signal of the first process: one ends it as in a terminal, one reloads the configuration.
func TestFirstProcessForwardsSignals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gw.yaml")
	ssetest.Must(t, os.WriteFile(file, []byte("servers:\n  one: {command: [cat]}\n"), 0o600))
	cmd := asFirstProcess("--addr", "127.0.0.1:0", "--no-start-check", "--no-remember", "-c", file)
	var log output
	cmd.Stderr = &log
	ssetest.Must(t, cmd.Start())
	late := time.AfterFunc(ssetest.Patience, func() { _ = cmd.Process.Kill() }) // it would not end
	defer late.Stop()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	log.await(t, 1, "msg=serving")
	ssetest.Must(t, cmd.Process.Signal(syscall.SIGHUP))
	log.await(t, 1, "by=SIGHUP")
	ssetest.Must(t, cmd.Process.Signal(syscall.SIGINT))
	if err := <-ended; err != nil {
		t.Errorf("after SIGINT: %v\n%s", err, log.String())
	}
	ssetest.WantText(t, "its log", log.String(), "signal=interrupt")
}

// The status of the program is that of the first process, also if the program is killed.
func TestFirstProcessPassesTheStatus(t *testing.T) {
	err := asFirstProcess("--no-such-flag").Run()
	ssetest.Want(t, "status of a wrong flag", fmt.Sprint(err), fmt.Sprintf("exit status %d", exit.Config))
	err = asFirstProcess("--version").Run()
	ssetest.Must(t, err)
	first := asFirstProcess("stdio", "--", "cat")
	stdin, err := first.StdinPipe()
	ssetest.Must(t, err)
	ssetest.Must(t, first.Start())
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late, child := time.After(ssetest.Patience), 0; child == 0; {
		select {
		case <-tick.C:
			if all := childrenOf(t, first.Process.Pid, "RSD"); len(all) > 0 {
				child = all[0]
				ssetest.Must(t, syscall.Kill(child, syscall.SIGKILL))
			}
		case <-late:
			t.Fatal("it has no child")
		}
	}
	ssetest.Want(t, "status of a program that was killed", fmt.Sprint(first.Wait()), fmt.Sprintf("exit status %d", exit.Signal+int(syscall.SIGKILL)))
	_ = stdin.Close()
}
