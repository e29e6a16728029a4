package daemon

import "golang.org/x/sys/windows"

// errAddrInUse is what the system says of a port that another program has.
const errAddrInUse = windows.WSAEADDRINUSE
