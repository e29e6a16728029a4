package ssetest

import "runtime"

// LiveHeap returns the bytes of live objects.
func LiveHeap() int64 {
	runtime.GC()
	runtime.GC() // a pool gives up its items at the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
