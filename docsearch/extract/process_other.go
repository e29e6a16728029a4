//go:build !linux

package extract

import "os/exec"

// isolate leaves the worker as it is: it ends at the latest after its time.
func isolate(*exec.Cmd) {}
