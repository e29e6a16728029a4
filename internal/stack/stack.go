// Package stack grows the stack of a goroutine at once.
//
// A new goroutine has 2 KiB, and the runtime doubles that whenever a call finds no room:
// it copies the stack two or three times, the deeper the more. Call a function of this
// package while the stack is nearly empty. If there is room already, it costs nothing.
package stack

const (
	most = 5 << 10 // with what is above it, it makes a stack of 8 KiB
	deep = 9 << 10 // 16 KiB
)

// Grow makes the stack of the calling goroutine as large as most work needs: 8 KiB.
func Grow() { grow(false) }

// GrowDeep makes it 16 KiB, for work that decodes JSON into Go values.
func GrowDeep() { growDeep(false) }

// grow has a frame of that size, for which it finds room when it begins. It does not use
// the frame, so nothing clears it.
//
//go:noinline
func grow(use bool) {
	if use {
		var room [most]byte
		keep(room[:])
	}
}

// growDeep is grow with a larger frame.
//
//go:noinline
func growDeep(use bool) {
	if use {
		var room [deep]byte
		keep(room[:])
	}
}

//go:noinline
func keep([]byte) {}
