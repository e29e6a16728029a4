package scaletest

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of the calling thread, which other processes do
// not add to.
func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}
