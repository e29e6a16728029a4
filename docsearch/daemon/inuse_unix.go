//go:build unix

package daemon

import "syscall"

// errAddrInUse is what the system says of a port that another program has.
const errAddrInUse = syscall.EADDRINUSE
