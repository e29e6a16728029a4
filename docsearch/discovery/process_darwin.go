package discovery

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ProcessStart returns what tells the process with this PID from later ones with the
// same: the time of its start. It fails if there is no such process, or it has ended and
// only its parent has not waited for it.
func ProcessStart(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", fmt.Errorf("look at process: %w", err)
	}
	const zombie = 5 // SZOMB of sys/proc.h
	if info.Proc.P_stat == zombie {
		return "", errors.New("look at process: it has ended")
	}
	start := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", start.Sec, start.Usec), nil
}
