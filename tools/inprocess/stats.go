package main

import (
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stats are what the process has used so far, and what it holds.
type stats struct {
	CPU        time.Duration `json:"cpu"` // user and system, in nanoseconds
	Resident   int64         `json:"resident"`
	Heap       int64         `json:"heap"`   // in use
	Stacks     int64         `json:"stacks"` // in use
	Allocated  int64         `json:"allocated"`
	Allocs     int64         `json:"allocs"`
	Goroutines int           `json:"goroutines"`
}

// serveStats answers with the stats, after a garbage collection if the query has gc.
// Without one it stops the world for a moment only.
func serveStats(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("gc") {
		for range 2 { // the second one frees what has finalizers, and the pools
			debug.FreeOSMemory()
		}
	}
	s, err := readStats()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(s) // a client that is gone needs no answer
}

func readStats() (stats, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return stats{}, err
	}
	resident, err := residentBytes()
	if err != nil {
		return stats{}, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return stats{
		CPU:      time.Duration(used.Utime.Nano() + used.Stime.Nano()),
		Resident: resident, Heap: int64(m.HeapInuse), Stacks: int64(m.StackInuse),
		Allocated: int64(m.TotalAlloc), Allocs: int64(m.Mallocs),
		Goroutines: runtime.NumGoroutine(),
	}, nil
}

// residentBytes returns the resident memory of the process, from /proc; 0 on systems
// without it.
func residentBytes() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if os.IsNotExist(err) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), " ")
	pages, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(pages, 10, 64)
	return n * int64(os.Getpagesize()), err
}
