//go:build !linux

package scaletest

import "time"

var start = time.Now()

// threadTime is the time on the clock: there is no processor time of a thread.
func threadTime() time.Duration { return time.Since(start) }
