//go:build !linux

package main

func setPeerTimeout(uintptr) error { return nil }
