package stdio

import "time"

// SetExitGrace replaces exitGrace for all tests.
func SetExitGrace(d time.Duration) { exitGrace = d }

// ForgetMemory makes the next call of Memory look at the processes.
func ForgetMemory() {
	groups.Lock()
	defer groups.Unlock()
	groups.at = time.Time{}
}
