package stdio

import "github.com/prometheus/procfs"

// Memory returns how many bytes of memory the living children of c and its copies hold, with the processes
// that these have started: their resident set, in which pages that they share count for each. It reads
// /proc, so it is 0 on systems other than Linux, and unless Observed made c.
func (c Command) Memory() (bytes int64) {
	leads := make(map[int]bool) // each child leads a process group
	for child := range c.children() {
		leads[child.proc.Process.Pid] = true
	}
	if len(leads) == 0 {
		return 0
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return 0
	}
	for _, process := range all {
		if stat, err := process.Stat(); err == nil && leads[stat.PGRP] { // else it has ended
			bytes += int64(stat.ResidentMemory())
		}
	}
	return bytes
}
