package stdio

import (
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

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
	for group, held := range memoryOfGroups(time.Second) {
		if leads[group] {
			bytes += held
		}
	}
	return bytes
}

// Memory is that of one child with the processes that it has started.
func (c *child) Memory() int64 { return memoryOfGroups(0)[c.proc.Process.Pid] }

// groups has the memory of all process groups, as it was lately: many servers ask at a time.
var groups struct {
	sync.Mutex // guards what follows
	at         time.Time
	bytes      map[int]int64 // not changed
}

// memoryOfGroups returns what the processes of each process group of this system hold, or held within the
// given time.
func memoryOfGroups(within time.Duration) map[int]int64 {
	groups.Lock()
	defer groups.Unlock()
	if time.Since(groups.at) < within {
		return groups.bytes
	}
	groups.at, groups.bytes = time.Now(), make(map[int]int64)
	all, _ := procfs.AllProcs() // none on another system
	for _, process := range all {
		if stat, err := process.Stat(); err == nil { // else it has ended
			groups.bytes[stat.PGRP] += int64(stat.ResidentMemory())
		}
	}
	return groups.bytes
}
