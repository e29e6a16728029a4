// Package stack grows the stack of a goroutine at once.
package stack

// size is the room that most work below Grow needs, in bytes. With what is above it, it
// makes a stack of 8 KiB.
const size = 5 << 10

// Grow makes the stack of the calling goroutine at least as large as most work needs.
// A new goroutine has 2 KiB, and the runtime doubles that whenever a call finds no room:
// it copies the stack two or three times, the deeper the more. Call Grow while the stack
// is nearly empty. If there is room already, Grow costs nothing.
func Grow() { grow(false) }

// grow has a frame of size bytes, for which it finds room when it begins. It does not
// use the frame, so nothing clears it.
//
//go:noinline
func grow(use bool) {
	if use {
		var room [size]byte
		keep(&room)
	}
}

//go:noinline
func keep(*[size]byte) {}
