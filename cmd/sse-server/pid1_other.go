//go:build !linux

package main

// runAsChild does nothing: other systems have no containers in which this is the first process.
func runAsChild() (code int, did bool) { return 0, false }
