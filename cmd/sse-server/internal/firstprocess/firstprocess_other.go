//go:build !linux

package firstprocess

// RunAsChild does nothing: other systems have no containers in which this is the first process.
func RunAsChild() (code int, did bool) { return 0, false }
