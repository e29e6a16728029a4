//go:build unix

package index

import "golang.org/x/sys/unix"

// release gives back the memory of a mapped file, which is read again when it is needed.
func release(mapped []byte) { _ = unix.Madvise(mapped, unix.MADV_DONTNEED) }
