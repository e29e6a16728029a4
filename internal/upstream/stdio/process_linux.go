package stdio

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unreadBytes returns how many bytes wait in a pipe, 0 if the system does not tell.
func unreadBytes(pipe *os.File) (n int) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	// A pipe that is closed has none.
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// processAttr makes the child the leader of a process group. The kernel kills the child
// when the thread that forked it ends; see supervise.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until the process has exited, without reaping it: waitid(2) with
// WNOWAIT. It reports whether that worked.
func awaitExit(pid int) bool {
	const byPID = 1     // P_PID
	var info [16]uint64 // siginfo_t, 128 bytes
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return errno == 0
		}
	}
}
