package main

import (
	"slices"
	"time"
)

// median returns the middle of the values, the lower of two. It does not change
// their order. There must be one.
func median[T float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

func micros(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
