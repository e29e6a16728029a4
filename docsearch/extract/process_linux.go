package extract

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isolate makes the worker a process group of its own, which dies with the thread that
// starts it.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// limitProcess makes the kernel refuse this process more memory, and end it when it has
// used its processor time. It may write no core, and no file larger than that of its cache.
func limitProcess(o order) error {
	seconds := uint64((o.Timeout + time.Second - 1) / time.Second)
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_DATA:  uint64(o.MaxMemory),
		unix.RLIMIT_CPU:   seconds,
		unix.RLIMIT_FSIZE: 64 << 20,
		unix.RLIMIT_CORE:  0,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("set resource limit %d: %w", resource, err)
		}
	}
	return nil
}
