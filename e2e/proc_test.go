package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is one process, told from a later one with the same number by when it
// started.
type process struct {
	pid, ppid int
	state     string
	started   string
}

// readProcess reads /proc; ok is false when there is no such process.
func readProcess(pid int) (p process, ok bool) {
	return parseProcess(pid, fmt.Sprintf("/proc/%d/stat", pid))
}

// parseProcess reads the stat file of a process or thread.
func parseProcess(pid int, file string) (p process, ok bool) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return process{}, false
	}
	// The second field is the program's name in parentheses and may hold anything.
	_, rest, found := strings.Cut(string(raw[strings.LastIndexByte(string(raw), ')'):]), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return process{}, false
	}
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, false
	}
	return process{pid: pid, ppid: ppid, state: fields[0], started: fields[19]}, true
}

// alive reports whether the same process still runs. A zombie does not: it waits
// for whoever inherited it.
func (p process) alive() bool {
	now, ok := readProcess(p.pid)
	return ok && now.started == p.started && now.state != "Z"
}

// endsSoon reports whether the process ends without further ado: the gateway does
// not reap what its children have started and it has killed, and a killed process
// may need a moment to be gone.
func (p process) endsSoon() bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); p.alive(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// descendants returns the processes below pid.
func descendants(t *testing.T, pid int) []process {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(entries) == 0 {
		t.Fatalf("these tests need /proc: %v", err)
	}
	children := map[int][]process{}
	for _, entry := range entries {
		n, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		if p, ok := readProcess(n); ok {
			children[p.ppid] = append(children[p.ppid], p)
		}
	}
	var all []process
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			all = append(all, p)
			next = append(next, p.pid)
		}
	}
	return all
}

// openFiles counts the gateway's descriptors.
func openFiles(t *testing.T, g *gateway) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("these tests need /proc: %v", err)
	}
	return len(all)
}

// endsWithParent has a process not live on when the test binary is killed.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
