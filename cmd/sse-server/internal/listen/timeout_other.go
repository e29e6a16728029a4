//go:build !linux

package listen

func setPeerTimeout(uintptr) error { return nil }
