// Package closed looks at channels that are only closed, without waiting.
package closed

// Is reports whether a channel is closed. Nothing is ever sent on it.
func Is(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
