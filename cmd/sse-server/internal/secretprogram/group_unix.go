//go:build unix

package secretprogram

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// lead makes the program the leader of a process group, which ends with it when its time is up.
func lead(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
