package stdio

import "time"

// SetExitGrace replaces exitGrace for all tests.
func SetExitGrace(d time.Duration) { exitGrace = d }
