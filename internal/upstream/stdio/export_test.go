package stdio

import "time"

// SetExitGrace replaces exitGrace, and returns what restores it.
func SetExitGrace(d time.Duration) (restore func()) {
	before := exitGrace
	exitGrace = d
	return func() { exitGrace = before }
}

// ForgetMemory makes the next call of Memory look at the processes.
func ForgetMemory() {
	groups.Lock()
	defer groups.Unlock()
	groups.at = time.Time{}
}
