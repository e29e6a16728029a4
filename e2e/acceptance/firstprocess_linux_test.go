package acceptance

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// As the first process of a container, which inherits what its servers leave behind, sse-server lets nothing of that stay.
func TestOrphansOfServersAreReapedByTheFirstProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "the server has left them")
	a := newAgent(t, "stdio", "--no-remember", "--", "sh", "-c", `for i in 1 2 3 4 5; do (true &); done; touch "$0"; exec cat >/dev/null`, file)
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 { // who is not root needs a user namespace for that
		a.cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		a.cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	a.start()
	a.post("1", "initialize", introduces)
	awaitFile(file)
	await(t, "no zombie is left", func() bool { return zombiesOf(t, a.cmd.Process.Pid) == 0 })
	ssetest.Must(t, a.cmd.Process.Signal(syscall.SIGTERM))
	a.awaitEnd()
	ssetest.WantText(t, "its log", a.log.String(), "signal=terminated")
}

// zombiesOf returns how many children of a process have ended, and nobody has waited for them.
func zombiesOf(t *testing.T, parent int) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	ssetest.Must(t, err)
	for _, file := range files {
		stat, _ := os.ReadFile(file) // it may have gone
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[0] == "Z" && f[1] == strconv.Itoa(parent) {
			n++
		}
	}
	return n
}
