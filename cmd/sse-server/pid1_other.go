//go:build !linux

package main

// runBelow does nothing: other systems have no containers in which this is the first process.
func runBelow() (code int, did bool) { return 0, false }
