package discovery

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ProcessStart returns what tells the process with this PID from later ones with the
// same: the time of its start. It fails if there is no such process.
func ProcessStart(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", fmt.Errorf("look at process: %w", err)
	}
	start := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", start.Sec, start.Usec), nil
}
